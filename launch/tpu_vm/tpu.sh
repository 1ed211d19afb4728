#!/usr/bin/env bash
# A run on a Cloud TPU slice, from your own machine: creates the slice, installs this checkout on its workers, runs, watches, deletes.
#
#   bash launch/tpu_vm/tpu.sh VERB --name RUN --zone ZONE [options] [-- jaxenc pretrain ...]
#
#   create    asks for the slice as a queued resource: --type v5litepod-16 --version v2-alpha-tpuv5-lite [--slices 1]
#             [--spot | --reserved | --best-effort]
#   setup     installs this checkout, or --wheel FILE, on all workers, with --extras (tpu,data,log). It copies the files that git tracks, as
#             they are now; it names the others, which stay here
#   run       --workdir gs://BUCKET/RUN -- COMMAND: starts COMMAND once on every worker, in a systemd unit that outlives ssh. The workers are
#             one run
#   babysit   all of these, and again on a new slice, as the same run, whenever the slice is lost. It takes the options of create, setup and
#             run, and --poll 60, the seconds between two looks
#   status    of the slice, and of the run on each worker
#   logs, follow   the output of worker 0; of the first slice's worker N or of all workers with --worker N|all
#   stop      ends the run with a checkpoint; `run` and `babysit` continue it
#   delete    deletes the slice and all that is on it
#
# Everywhere: [--project PROJECT] [--dry-run]. babysit ends with the run: after 0 it deletes the slice. After any other exit code it leaves the
# slice for you to look at, which costs until you delete it. After `stop` it ends with 75.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=launch/common.sh
source "$root/launch/common.sh"
zone='' project='' type='' version='' slices=1 spot='' reserved='' best_effort='' wheel='' extras=tpu,data,log poll=60 worker=0
verb_of 'create setup run babysit status logs follow stop delete' "$@"
options 'zone project type version slices spot! reserved! best-effort! wheel extras poll worker' "${@:2}"
[ -n "$zone" ] || fail "--zone is missing: it says where the slice is"
number --slices "$slices"; number --poll "$poll"
[[ $worker =~ ^(all|[0-9]+)$ ]] || fail "--worker is '$worker': a number from 0, or all"
case $spot$reserved$best_effort in 11*) fail "give one of --spot, --reserved and --best-effort" ;; esac
case $verb in create | babysit) [ "${type:+$version}" ] || fail "$verb needs --type and --version" ;; esac
case $verb in run | babysit) settle ;; esac
case $verb$workdir in *://*) ;; babysit*) fail "--workdir is $workdir: a new slice has empty disks; write gs://BUCKET/$name" ;; esac
location=(--zone="$zone" ${project:+--project="$project"})
home=jaxenc-$name # on the workers, in the user's home

resource() { run gcloud compute tpus queued-resources "$@"; }
on() { # all, or the number of a worker of the first slice; a command for its shell
  local node=0
  [ "$1" != all ] || node=all
  resource ssh "$name" "${location[@]}" --node="$node" --worker="$1" --command="$2"
}
worker() { on "$1" "bash $home/launch/tpu_vm/worker.sh $2"; }
states() { on all "if [ -e $home/launch ]; then bash $home/launch/tpu_vm/worker.sh state; else echo jaxenc-state: absent on \$(hostname); fi"; }

create() {
  local nodes=(--node-id="$name") tier=() track=()
  [ "$slices" -eq 1 ] || nodes=(--node-count="$slices" --node-prefix="$name")
  if [ "$spot" ]; then tier=(--spot); elif [ "$reserved" ]; then tier=(--reserved); fi
  if [ "$best_effort" ]; then tier=(--best-effort) track=(alpha); fi # gcloud has it in alpha only
  run gcloud ${track[@]+"${track[@]}"} compute tpus queued-resources create "$name" "${location[@]}" --accelerator-type="$type" \
    --runtime-version="$version" "${nodes[@]}" ${tier[@]+"${tier[@]}"}
}

pack() { # FILE: the wheel and what starts it, or what git tracks of this checkout, changes and deletions included
  local snapshot left
  if [ "$wheel" ]; then
    run tar -czf "$1" -C "$root" launch -C "$(cd "$(dirname "$wheel")" && pwd)" "$(basename "$wheel")"
  elif [ "$dry" ]; then
    echo "snapshot=\$(git -C $(quote "$root") stash create)" # a commit that only its number names; nothing where nothing was changed
    echo "git -C $(quote "$root") archive --output=$(quote "$1") \"\${snapshot:-HEAD}\""
  else
    snapshot=$(git -C "$root" stash create) || fail "git cannot read this checkout (see above): give a wheel with --wheel FILE"
    left=$(git -C "$root" ls-files --others --exclude-standard --directory | sed -n '1,3p; 4s/.*/.../p' | paste -sd ' ' -)
    [ -z "$left" ] || echo "tpu: git does not track these, and they stay here (git add takes them along): $left" >&2
    git -C "$root" archive --output="$1" "${snapshot:-HEAD}"
  fi
}

setup() { # its parts are joined by &&: babysit calls this where `set -e` is off
  local archive=${TMPDIR:-/tmp}/$home.tgz idle="! systemctl is-active --quiet $home || { echo 'tpu: the run is on: stop it first' >&2; exit 2; }"
  [ -z "$wheel" ] || [ -f "$wheel" ] || fail "--wheel is $wheel: there is no such file"
  pack "$archive" &&
    resource scp "$archive" "$name:$home.tgz" "${location[@]}" --node=all --worker=all &&
    on all "$idle; rm -rf $home && mkdir $home && tar -xzf $home.tgz -C $home && bash $home/launch/tpu_vm/worker.sh setup $(quote "$extras")"
}

start() { worker all "start $(quoted "$workdir" -- "${command[@]}")"; }
delete() { resource delete "$name" "${location[@]}" --force --quiet; }
# shellcheck source=launch/tpu_vm/babysit.sh
source "$root/launch/tpu_vm/babysit.sh"
case $verb in
  run) start ;;
  status) resource describe "$name" "${location[@]}" --format='value(state.state, state.failedData.error.message)'; states ;;
  logs | follow) worker "$worker" "$verb" ;;
  stop) worker all stop ;;
  *) "$verb" ;;
esac
