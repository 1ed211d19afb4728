#!/usr/bin/env bash
# Runs one command, and runs it again after exit 75 (stopped, checkpoint written) and after a crash. The other scripts use it where
# nothing else would start the run again.
#
#   bash launch/keep_running.sh --workdir DIR [--restarts 3] [--wait S] [--pass-75] [--dry-run] -- COMMAND
#
# It ends at 0 (done), 2 (bad input), 3 (diverged), 126 and 127 (a command that cannot start), and when --restarts starts in a row brought no
# newer checkpoint in DIR, of any seed of a fine-tuning. DIR may be an address such as gs://BUCKET/RUN; PYTHON lists what is there, with fsspec.
# --wait: seconds between a crash and the next start, so that the other processes of the run have noticed it: more than JAXENC_HEARTBEAT where
# they are on other machines. --pass-75: ends at 75 too, where a scheduler starts the job again. TERM goes to the command and ends this script
# with its code.
set -uo pipefail
# shellcheck source=launch/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=launch/progress.sh
source "$(dirname "${BASH_SOURCE[0]}")/progress.sh"
restarts=3 wait=0 pass_75=''
options 'restarts wait pass-75!' --name run "$@" # nothing is made here that would need a name
settle
number --restarts "$restarts"
case $wait in *[!0-9]*) fail "--wait is '$wait': a whole number of seconds" ;; esac
if [ "$dry" ]; then run "${command[@]}"; exit; fi

asked='' pid=''
stop() {
  asked=1
  [ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null
}
trap stop TERM INT

once() { # runs the command; `code` is its exit code
  "${command[@]}" &
  pid=$!
  [ -z "$asked" ] || kill -TERM "$pid" 2>/dev/null
  while true; do
    wait "$pid"
    code=$?
    # A signal to this script ends `wait`, not the command.
    kill -0 "$pid" 2>/dev/null || break
  done
  pid=''
}

idle=-1 # restarts in a row that brought no newer checkpoint; the first start is none
read -r last newest < <(saved "$workdir")
while true; do
  once
  [ "$asked" ] && exit $((code == 143 ? 75 : code)) # 143: TERM came before Python listened
  case $code in
    0 | 2 | 3 | 126 | 127) exit "$code" ;;
    75) if [ "$pass_75" ]; then exit 75; fi ;;
  esac
  read -r now newest < <(saved "$workdir")
  if [ "$now" -gt "$last" ]; then idle=0; else idle=$((idle + 1)); fi
  last=$now
  if [ "$idle" -ge "$restarts" ]; then
    echo "keep_running: ended with $code; $restarts restarts brought no newer checkpoint than $newest: giving up" >&2
    exit "$code"
  fi
  echo "keep_running: ended with $code: starting again (newest checkpoint: $newest)" >&2
  if [ "$code" -ne 75 ] && [ "$wait" -gt 0 ]; then
    sleep "$wait" &
    wait $!
    [ -z "$asked" ] || exit 75
  fi
done
