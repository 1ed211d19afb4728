#!/usr/bin/env bash
# Runs one command, and runs it again after exit 75 (stopped, checkpoint written) and after a crash. The other scripts use it where
# nothing else would start the run again.
#
#   bash launch/keep_running.sh --workdir DIR [--restarts 3] [--wait S] [--pass-75] [--dry-run] -- COMMAND
#
#   --workdir    where the command keeps its checkpoints: a folder or a URL such as gs://BUCKET/RUN, which PYTHON lists with fsspec
#   --restarts   it gives up after so many restarts in a row that brought no newer checkpoint (in a fine-tuning: of any seed)
#   --wait       seconds between a crash and the next start. By then the other processes of the run have to have noticed the crash: more
#                than JAXENC_HEARTBEAT where they are on other machines
#   --pass-75    ends with 75 too, for a scheduler that starts the job again
#
# It ends with 0 (done), 2 (bad input), 3 (diverged), 126 and 127 (a command that cannot start): docs/reliability.md. A TERM goes to the
# command, and this script ends with the command's code.
set -uo pipefail
# shellcheck source=launch/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
restarts=3 wait=0 pass_75=''
options 'restarts wait pass-75!' --name run "$@" # nothing is made here that would need a name
settle
number --restarts "$restarts"
case $wait in *[!0-9]* | ??????????*) fail "--wait is '$wait': a whole number of seconds, up to 999999999" ;; esac
if [ "$dry" ]; then run "${command[@]}"; exit; fi

# shellcheck source=launch/restarts.sh
source "$(dirname "${BASH_SOURCE[0]}")/restarts.sh"
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

while true; do
  starting
  once
  [ "$asked" ] && exit $((code == 143 ? 75 : code)) # 143: TERM came before Python listened
  if is_final "$code" || { [ "$code" -eq 75 ] && [ "$pass_75" ]; }; then exit "$code"; fi
  may_restart 'keep_running: the command' "$code" || exit "$code"
  if [ "$code" -ne 75 ] && [ "$wait" -gt 0 ]; then
    sleep "$wait" &
    wait $!
    [ -z "$asked" ] || exit 75
  fi
done
