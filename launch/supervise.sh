# shellcheck shell=bash
# Runs the processes of launch/local.sh, whose head says what happens when one dies. Sourced, not run. local.sh sets `procs`, their number,
# and defines `own RANK PORT`, which puts the variables of a process in `mine`.
# shellcheck disable=SC2154 # those names

# shellcheck source=launch/restarts.sh
. "$(dirname "${BASH_SOURCE[0]}")/restarts.sh"

# A session of its own for each process, so that a Ctrl-C at the terminal reaches it once, as TERM.
apart=(setsid)
if setpriv --pdeathsig KILL true 2>/dev/null; then
  apart=(setpriv --pdeathsig KILL setsid)
else
  echo "local: no setpriv --pdeathsig here: after a kill -9 of this launcher, end its processes yourself" >&2
fi

exec 3>&2
pids=() asked='' interrupted=''
declare -A rank_of
tell() { local pid; for pid in "${pids[@]}"; do kill "-$1" "$pid" 2>/dev/null; done; }
ask() { # the signal that came
  echo "local: $1: asked every process to stop after its step${2:-}" >&3
  asked=1
  tell TERM
}
trap 'ask TERM' TERM
trap 'if [ "$interrupted" ]; then tell KILL; else interrupted=1; ask INT " (Ctrl-C again: end them now)"; fi' INT

dead() { # the code of a process that has ended; false while it lives
  kill -0 "$1" 2>/dev/null && return 1
  wait "$1"
  status=$?
}

# EXIT_CODE: of several processes that are found dead at once, the one with the largest weight is taken to have died first: the others
# crashed because they missed it.
weigh() {
  case $1 in
    0) echo 0 ;;
    1 | 75 | 134) echo 1 ;;
    2 | 3 | 126 | 127) echo 3 ;;
    *) echo 2 ;;
  esac
}

gang() { # runs all processes once; `code` is 0, or the code of the first that ended otherwise
  local rank pid status left weight heaviest last=''
  pids=() code=0
  # Above Linux's range for outgoing connections, so that only another launcher may take it before process 0 listens.
  while port=$((61440 + RANDOM % 4096)); (: <> "/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  for ((rank = 0; rank < procs; rank++)); do
    own "$rank" "$port"
    # sed ends with its process. A TERM for all of the launcher's group, as timeout and systemd send it, would end it before, and the
    # process would die of its next line instead of saving.
    (export "${mine[@]}"; exec "${apart[@]}" "$@") > >(trap '' INT TERM; exec sed -u "s/^/[$rank] /") \
      2> >(trap '' INT TERM; exec sed -u "s/^/[$rank] /" >&3) &
    pids+=($!) rank_of[$!]=$rank
  done
  [ -z "$asked" ] || tell TERM
  while [ ${#pids[@]} -gt 0 ]; do
    left=() heaviest=0
    for pid in "${pids[@]}"; do
      if ! dead "$pid"; then left+=("$pid"); continue; fi
      weight=$(weigh "$status")
      if [ -z "$last" ] && [ "$weight" -gt "$heaviest" ]; then heaviest=$weight code=$status who=${rank_of[$pid]}; fi
    done
    pids=("${left[@]}")
    if [ -z "$last" ] && [ "$code" -ne 0 ]; then
      # If a process stopped on request, the others stop too, unless it did so before they met. If it failed, they would wait for it.
      [ "$code" -eq 75 ] || tell TERM
      last=$((SECONDS + kill_after))
    fi
    if [ -n "$last" ] && [ $SECONDS -ge "$last" ]; then tell KILL; fi
    [ ${#pids[@]} -eq 0 ] || sleep 0.2
  done
}

supervise() { # WORKDIR KILL_AFTER RESTARTS COMMAND...: exits as launch/local.sh says
  workdir=$1 kill_after=$2 restarts=$3
  shift 3
  while true; do
    starting
    gang "$@" 2>/dev/null # without the shell's own lines about killed jobs
    if is_final "$code" || [ "$code" -eq 75 ]; then exit "$code"; fi
    if [ -n "$asked" ]; then exit $((code == 143 ? 75 : code)); fi # 143: TERM came before Python listened
    may_restart "local: process $who" "$code" "all $procs" || exit "$code"
  done
}
