#!/usr/bin/env bash
# Runs one command as N processes of this machine, and all of them again where one dies.
#
#   bash launch/local.sh --procs N [--devices-per-proc D] [--dry-run] -- jaxenc pretrain --config ... --workdir RUN
#
# Each process gets JAXENC_COORDINATOR=127.0.0.1:PORT (a free one; it takes whoever calls), JAXENC_PROCESSES and JAXENC_PROCESS; its lines
# begin with its number. --devices-per-proc D: each has D CPU devices and no other; without it each sees every accelerator. When one dies
# the others get TERM and, KILL_AFTER (5) seconds later, KILL; all start again, until RESTARTS (3) in a row brought no newer checkpoint.
# Exit code: 0 done · 75 stopped on request, run it again · 2 bad input, 3 training diverged, 126 and 127 a command that cannot start, not
# tried again · else that of the process that died first. TERM and INT (Ctrl-C) become TERM for every process, a second INT KILL: the
# newest checkpoint is what stays. A launcher that is killed takes its processes with it.
set -uo pipefail

fail() { echo "local: $*" >&2; exit 2; }
kill_after=${KILL_AFTER:-5} restarts=${RESTARTS:-3}
procs='' devices='' dry='' workdir=''
while [ $# -gt 0 ]; do
  case $1 in
    --procs) procs=${2:-}; shift 2 || fail "--procs needs a number" ;;
    --devices-per-proc) devices=${2:-}; shift 2 || fail "--devices-per-proc needs a number" ;;
    --dry-run) dry=1; shift ;;
    --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit ;;
    --) shift; break ;;
    *) fail "$1: write --procs N [--devices-per-proc D] [--dry-run] -- COMMAND" ;;
  esac
done
[[ $procs =~ ^[1-9][0-9]*$ ]] || fail "--procs is '$procs': a number of processes"
[[ ${devices:-1} =~ ^[1-9][0-9]*$ ]] || fail "--devices-per-proc is '$devices': a number of devices"
[ $# -gt 0 ] || fail "no command after --"
[[ "$kill_after $restarts" =~ ^(0|[1-9][0-9]*)\ (0|[1-9][0-9]*)$ ]] || fail "KILL_AFTER '$kill_after', RESTARTS '$restarts': whole numbers"
for ((i = 1; i <= $#; i++)); do
  case ${!i} in
    --workdir=*) workdir=${!i#*=} ;;
    --workdir) next=$((i + 1)); workdir=${!next:-} ;;
  esac
done
if [ -n "$devices" ]; then
  export JAX_PLATFORMS=cpu XLA_FLAGS="${XLA_FLAGS:-} --xla_force_host_platform_device_count=$devices"
fi

free_port() { "${PYTHON:-python3}" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

newest() { # the newest checkpoint of the run, or -1
  local step
  step=$(find "$workdir/checkpoints" -maxdepth 1 -type d -printf '%f\n' 2>/dev/null | grep -xE '[0-9]+' | sort -n | tail -n 1)
  echo "${step:--1}"
}

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

gang() { # runs all processes once; `code` is 0, or the code of the first that ended otherwise
  local port=$1 rank pid status left last=''
  shift
  pids=() code=0
  for ((rank = 0; rank < procs; rank++)); do
    JAXENC_COORDINATOR=127.0.0.1:$port JAXENC_PROCESSES=$procs JAXENC_PROCESS=$rank "${apart[@]}" "$@" \
      > >(trap '' INT; exec sed -u "s/^/[$rank] /") 2> >(trap '' INT; exec sed -u "s/^/[$rank] /" >&3) &
    pids+=($!) rank_of[$!]=$rank
  done
  [ -z "$asked" ] || tell TERM
  while [ ${#pids[@]} -gt 0 ]; do
    left=()
    for pid in "${pids[@]}"; do
      if ! dead "$pid"; then
        left+=("$pid")
      elif [ $code -eq 0 ] && [ $status -ne 0 ]; then
        code=$status who=${rank_of[$pid]}
        # Who stops on request is followed by the others, unless it went before they met; who fails leaves them waiting for it.
        [ $code -eq 75 ] || tell TERM
        last=$((SECONDS + kill_after))
      fi
    done
    pids=("${left[@]}")
    if [ -n "$last" ] && [ $SECONDS -ge "$last" ]; then tell KILL; fi
    [ ${#pids[@]} -eq 0 ] || sleep 0.2
  done
}

if [ -n "$dry" ]; then
  command=${devices:+ JAX_PLATFORMS=cpu XLA_FLAGS=$(printf %q "$XLA_FLAGS")}$(printf ' %q' "$@")
  for ((rank = 0; rank < procs; rank++)); do
    echo "JAXENC_COORDINATOR=127.0.0.1:PORT JAXENC_PROCESSES=$procs JAXENC_PROCESS=$rank$command"
  done
  exit
fi

idle=-1 # restarts in a row that brought no newer checkpoint; the first start is none
while true; do
  before=$(newest)
  port=$(free_port) || fail "no free port: set PYTHON to a Python 3"
  gang "$port" "$@" 2>/dev/null # without the shell's own lines about killed jobs
  case $code in
    0 | 2 | 3 | 75 | 126 | 127) exit $code ;;
  esac
  if [ -n "$asked" ]; then exit $((code == 143 ? 75 : code)); fi # 143: TERM came before Python listened
  now=$(newest)
  if [ "$now" -gt "$before" ]; then idle=0; else idle=$((idle + 1)); fi
  if [ $idle -ge "$restarts" ]; then
    echo "local: process $who ended with $code; $restarts restarts brought no newer checkpoint than step $now: giving up" >&2
    exit $code
  fi
  echo "local: process $who ended with $code: starting all $procs again (newest checkpoint: step $now)" >&2
done
