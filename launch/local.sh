#!/usr/bin/env bash
# Runs one command as N processes of this machine, and all of them again where one dies.
#
#   bash launch/local.sh --procs N [--devices-per-proc D] [--dry-run] -- jaxenc pretrain --config ... --workdir RUN
#
# Each process gets JAXENC_COORDINATOR=127.0.0.1:PORT (a free one; it takes whoever calls), JAXENC_PROCESSES and JAXENC_PROCESS, and its lines
# begin with its number. --devices-per-proc D: D CPU devices in each. When one process dies the others get TERM and, KILL_AFTER (30) seconds
# later, KILL; then all start again from the newest checkpoint, until RESTARTS (3) starts in a row brought no newer one.
# Exit code: 0 done · 75 stopped on request, run it again · 2 bad input, not tried again · else that of the process that died first.
# TERM and INT go to every process, once each.
set -uo pipefail

fail() { echo "local: $*" >&2; exit 2; }
procs='' devices='' dry='' workdir=''
while [ $# -gt 0 ]; do
  case $1 in
    --procs) procs=${2:-}; shift 2 || fail "--procs needs a number" ;;
    --devices-per-proc) devices=${2:-}; shift 2 || fail "--devices-per-proc needs a number" ;;
    --dry-run) dry=1; shift ;;
    --) shift; break ;;
    *) fail "$1: write --procs N [--devices-per-proc D] [--dry-run] -- COMMAND" ;;
  esac
done
[[ $procs =~ ^[1-9][0-9]*$ ]] || fail "--procs is '$procs': a number of processes"
[[ ${devices:-1} =~ ^[1-9][0-9]*$ ]] || fail "--devices-per-proc is '$devices': a number of devices"
[ $# -gt 0 ] || fail "no command after --"
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

pids=()
running() { # how many of the processes live
  local pid count=0
  for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null && count=$((count + 1)); done
  echo $count
}
tell() { local pid; for pid in "${pids[@]}"; do kill "-$1" "$pid" 2>/dev/null; done; }
asked=''
ask() { # a request to stop, handed on once
  asked=$1
  tell "$1"
}
trap 'ask TERM' TERM
trap 'ask INT' INT

gang() { # runs all processes once; `code` becomes 0, or the code of the first that ended otherwise
  local port rank status waited
  port=$(free_port) || fail "no free port: set PYTHON to a Python 3"
  pids=() code=0
  for ((rank = 0; rank < procs; rank++)); do
    # A job of its own each, so that the terminal's Ctrl-C comes from here and comes once.
    JAXENC_COORDINATOR=127.0.0.1:$port JAXENC_PROCESSES=$procs JAXENC_PROCESS=$rank setsid "$@" \
      > >(exec sed -u "s/^/[$rank] /") 2> >(exec sed -u "s/^/[$rank] /" >&2) &
    pids+=($!)
  done
  [ -z "$asked" ] || tell "$asked"
  for ((waited = 0; waited < procs;)); do
    wait -n "${pids[@]}" 2>/dev/null
    status=$?
    # A signal of ours ends `wait` too; 127: nobody is left to wait for.
    [ "$(running)" -lt $((procs - waited)) ] || continue
    [ $status -ne 127 ] || break
    waited=$((procs - $(running)))
    if [ $status -ne 0 ] && [ $code -eq 0 ]; then
      code=$status
      end_others $status &
      watcher=$!
    fi
  done
  [ -z "${watcher:-}" ] || { kill "$watcher"; wait "$watcher"; } 2>/dev/null
  watcher=''
}
