#!/usr/bin/env bash
# Runs one command as several processes of this machine, and all of them again where one dies. For Linux.
#
#   bash launch/local.sh [--procs N] [--gpus-per-proc K | --cpu [D]] [--dry-run] -- jaxenc pretrain --config ... --workdir RUN
#
# GPUs: one process a GPU, or N processes that share them evenly, or processes of K GPUs. They are those of nvidia-smi, or of
# CUDA_VISIBLE_DEVICES where it is set. Without GPUs N is needed, and each process sees what jax finds.
# CPUs: --cpu, or --devices-per-proc D, gives each of N processes D (1) CPU devices and no GPU.
# Each process gets JAXENC_COORDINATOR=127.0.0.1:PORT (a free port; it accepts any connection), JAXENC_PROCESSES, JAXENC_PROCESS, and what
# launch/env/gpu.sh or cpu.sh sets. Its lines begin with its number. --dry-run prints what would run and starts nothing.
# When one dies the others get TERM, and KILL after KILL_AFTER (5) seconds. Then all start again, until RESTARTS (3) restarts in a row brought
# no newer checkpoint. The exit code is that of the process that died first; 0, 2, 3, 75, 126 and 127 are final (docs/reliability.md).
# TERM and Ctrl-C become TERM for every process, a second Ctrl-C KILL. If the launcher is killed, its processes end too.
set -uo pipefail

fail() { echo "local: $*" >&2; exit 2; }
is_count() { [[ $1 =~ ^[1-9][0-9]{0,3}$ ]] || fail "$2 is '$1': a whole number from 1"; }
kill_after=${KILL_AFTER:-5} restarts=${RESTARTS:-3}
procs='' each='' devices='' dry='' workdir=''
while [ $# -gt 0 ]; do
  case $1 in
    --procs) procs=${2:-}; is_count "$procs" "$1"; shift 2 ;;
    --gpus-per-proc) each=${2:-}; is_count "$each" "$1"; shift 2 ;;
    --devices-per-proc) devices=${2:-}; is_count "$devices" "$1"; shift 2 ;;
    --cpu) devices=1; shift; case ${1:-} in [0-9]*) devices=$1; is_count "$devices" --cpu; shift ;; esac ;;
    --dry-run) dry=1; shift ;;
    --help | -h) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; exit ;;
    --) shift; break ;;
    *) fail "$1: write [--procs N] [--gpus-per-proc K | --cpu [D]] [--dry-run] -- COMMAND" ;;
  esac
done
[ $# -gt 0 ] || fail "no command after --"
[[ $OSTYPE == linux* ]] || fail "this is $OSTYPE, and the launcher needs Linux: one process without it can use all devices of a machine"
[[ "$kill_after $restarts" =~ ^(0|[1-9][0-9]{0,8})\ (0|[1-9][0-9]{0,8})$ ]] ||
  fail "KILL_AFTER '$kill_after', RESTARTS '$restarts': whole numbers up to 999999999"
[ -z "$each" ] || [ -z "$devices" ] || fail "--gpus-per-proc and --cpu: one of them"
for ((i = 1; i <= $#; i++)); do
  case ${!i} in
    --workdir=*) workdir=${!i#*=} ;;
    --workdir) next=$((i + 1)); workdir=${!next:-} ;;
  esac
done

if [ -n "${CUDA_VISIBLE_DEVICES+set}" ]; then
  gpus=() # up to the first that is none, such as -1 or NoDevFiles, as CUDA reads it
  IFS=', ' read -ra listed <<< "$CUDA_VISIBLE_DEVICES"
  for gpu in "${listed[@]}"; do [[ $gpu =~ ^([0-9]+|GPU-.+|MIG-.+)$ ]] || break; gpus+=("$gpu"); done
else mapfile -t gpus < <(nvidia-smi -L 2>/dev/null | sed -n 's/^GPU \([0-9]*\):.*/\1/p'); fi
found=${#gpus[@]}
declare -A was
for name in $(compgen -e); do was[$name]=${!name}; done
here=$(dirname "${BASH_SOURCE[0]}")
if [ -n "$devices" ] || [ "${JAX_PLATFORMS:-}" = cpu ]; then
  [ -z "$each" ] || fail "--gpus-per-proc, and JAX_PLATFORMS is cpu: unset it"
  [ "$found" = 0 ] || echo "local: $found GPUs of this machine are idle: the processes use CPUs, as asked" >&2
  gpus=() found=0
  # shellcheck disable=SC1091
  . "$here/env/cpu.sh"
  [ -z "$devices" ] || export JAX_PLATFORMS=cpu XLA_FLAGS="${XLA_FLAGS:-} --xla_force_host_platform_device_count=$devices"
elif [ "$found" -gt 0 ]; then
  if [ -n "$each" ]; then
    most=$((found / each))
    [ "${procs:-1}" -le "$most" ] || fail "${procs:-1} processes of $each GPUs, and there are $found: lower one of the two numbers"
    [ -n "$procs" ] || [ $((found % each)) = 0 ] || fail "$each GPUs a process do not divide $found: give --procs too, at most $most"
    procs=${procs:-$most}
  else
    procs=${procs:-$found} each=$((found / procs))
    [ "$each" -gt 0 ] || fail "$procs processes and $found GPUs: --procs $found at most, or --cpu for processes without GPUs"
    [ $((found % procs)) = 0 ] ||
      fail "$procs processes do not divide $found GPUs: another --procs, or also --gpus-per-proc $each, which leaves some idle"
  fi
  idle=$((found - procs * each))
  [ $idle = 0 ] || echo "local: $idle of $found GPUs are idle" >&2
  # shellcheck disable=SC1091
  . "$here/env/gpu.sh"
else
  [ -z "$each" ] || fail "--gpus-per-proc, and there are no GPUs here: see nvidia-smi -L and CUDA_VISIBLE_DEVICES, or use --cpu"
  [ -n "$procs" ] || fail "there are no GPUs here: write --procs N, or start the command without this launcher"
fi
[ -n "$procs" ] || fail "--procs N is missing: the number of processes"
changed=() # what is exported for all and was not so before
for name in $(compgen -e); do [ "$name" = _ ] || [ "${was[$name]-unset}" = "${!name}" ] || changed+=("$name=${!name}"); done
own() { # rank, port: `mine`, the variables of this process
  mine=(JAXENC_COORDINATOR="127.0.0.1:$2" JAXENC_PROCESSES="$procs" JAXENC_PROCESS="$1")
  [ "$found" = 0 ] || mine+=(CUDA_VISIBLE_DEVICES="$(IFS=,; echo "${gpus[*]:$(($1 * each)):each}")")
}
if [ -n "$dry" ]; then
  for ((rank = 0; rank < procs; rank++)); do
    own $rank PORT
    printf '%s' "${mine[*]}"
    printf ' %q' "${changed[@]}" "$@"
    echo
  done
  exit
fi

if ! command -v -- "$1" >/dev/null; then
  echo "local: $1: there is no such command; activate the environment that has it, as with source .venv/bin/activate" >&2
  exit 127
fi
# shellcheck disable=SC1091
. "$here/supervise.sh"
supervise "$workdir" "$kill_after" "$restarts" "$@"
