#!/usr/bin/env bash
# A run on a Cloud TPU slice, from your own machine: creates the slice, installs this checkout on its workers, runs, watches, deletes.
#
#   bash launch/tpu_vm/tpu.sh VERB --name RUN --zone ZONE [options] [-- jaxenc pretrain ...]
#
#   create    asks for the slice as a queued resource: --type v5litepod-16 --version v2-alpha-tpuv5-lite [--slices 1]
#             [--spot | --reserved | --best-effort]
#   setup     installs this checkout, or --wheel FILE, with --extras (tpu,data,log) on all workers
#   run       --workdir gs://BUCKET/RUN -- COMMAND: starts COMMAND once on every worker, which are one run, in a systemd unit that outlives ssh
#   babysit   all of these, and again on a new slice, as the same run, whenever this one is lost: the options of create, setup and run.
#             --poll 60: seconds between two looks
#   status · logs · follow · stop · delete    stop: the run ends with a checkpoint and `run` continues it; delete: the slice, with all on it
#
# Everywhere: [--project PROJECT] [--dry-run]. babysit ends with the run: at 0 it deletes the slice; at any other exit code it leaves it for
# you to look at (it costs until you delete it), and at `stop` with 75.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=launch/common.sh
source "$root/launch/common.sh"
zone='' project='' type='' version='' slices=1 spot='' reserved='' best_effort='' wheel='' extras=tpu,data,log poll=60
verb_of 'create setup run babysit status logs follow stop delete' "$@"
options 'zone project type version slices spot! reserved! best-effort! wheel extras poll' "${@:2}"
[ -n "$zone" ] || fail "--zone is missing: it says where the slice is"
number --slices "$slices"; number --poll "$poll"
case $spot$reserved$best_effort in 11*) fail "give one of --spot, --reserved and --best-effort" ;; esac
case $verb in create | babysit) [ "${type:+$version}" ] || fail "$verb needs --type and --version" ;; esac
case $verb in run | babysit) settle ;; esac
case $verb$workdir in *://*) ;; babysit*) fail "--workdir is $workdir: a new slice has empty disks; write gs://BUCKET/$name" ;; esac
place=(--zone="$zone" ${project:+--project="$project"})
home=jaxenc-$name # on the workers, in the user's home

resource() { run gcloud compute tpus queued-resources "$@"; }
on() { resource ssh "$name" "${place[@]}" --node="$1" --worker="$1" --command="$2"; } # all | 0, command for the workers' shell
worker() { on "$1" "bash $home/launch/tpu_vm/worker.sh $2"; }
states() { on all "if [ -e $home/launch ]; then bash $home/launch/tpu_vm/worker.sh state; else echo jaxenc-state: absent; fi"; }

create() {
  local nodes=(--node-id="$name") tier=() track=()
  [ "$slices" -eq 1 ] || nodes=(--node-count="$slices" --node-prefix="$name")
  if [ "$spot" ]; then tier=(--spot); elif [ "$reserved" ]; then tier=(--reserved); fi
  if [ "$best_effort" ]; then tier=(--best-effort) track=(alpha); fi # gcloud has it in alpha only
  run gcloud ${track[@]+"${track[@]}"} compute tpus queued-resources create "$name" "${place[@]}" --accelerator-type="$type" \
    --runtime-version="$version" "${nodes[@]}" ${tier[@]+"${tier[@]}"}
}

setup() { # each part only after the one before: babysit calls this where `set -e` is off
  local archive list files
  archive=${TMPDIR:-/tmp}/$home.tgz list=${TMPDIR:-/tmp}/$home.list files=(-T "$list")
  if [ "$wheel" ]; then
    files=(launch -C "$(cd "$(dirname "$wheel")" && pwd)" "$(basename "$wheel")")
  elif [ "$dry" ]; then
    echo "git -C $(quote "$root") ls-files > $(quote "$list")"
  else
    git -C "$root" ls-files > "$list" || return
  fi
  run tar -czf "$archive" -C "$root" "${files[@]}" &&
    resource scp "$archive" "$name:$home.tgz" "${place[@]}" --node=all --worker=all &&
    on all "mkdir -p $home && rm -f $home/*.whl && tar -xzf $home.tgz -C $home && bash $home/launch/tpu_vm/worker.sh setup $(quote "$extras")"
}

start() { worker all "start $(quoted "$workdir" -- "${command[@]}")"; }
delete() { resource delete "$name" "${place[@]}" --force --quiet; }
state() { # of the queued resource; `none` where there is none, nothing where the service does not answer
  local answer
  answer=$(gcloud compute tpus queued-resources describe "$name" "${place[@]}" --format='value(state.state)' 2>&1) && echo "$answer" && return
  case $answer in *NOT_FOUND*) echo none ;; *) echo "$answer" >&2 ;; esac
}

install() { setup && start; }
attempt() { # three in a row, between two looks at a run that runs
  [ "$failed" -lt 3 ] || fail "three starts in a row came to nothing: see above and the logs, then delete $name"
  failed=$((failed + 1)); "$@" || true
}

look() { # one look at the workers of a slice that is there; sets `code` when the run is over
  local answers failure
  answers=$(states 2>/dev/null | sed -n 's/^jaxenc-state: //p' | sort -u) || true # each once; none while they cannot be reached
  failure=$(grep -vxE 'running|absent|stopped|ended (0|75)' <<< "$answers" | sed -n '1s/ended //p') || true
  case $answers in
    absent) attempt install ;;
    *absent*) start || true ;; # one of them was restarted
    '') ;;
    *running*) failed=0 ;;
    *stopped*) code=75 ;;
    'ended 0') code=0 ;;
    *) if [ "$failure" ]; then code=$failure; else attempt start; fi ;; # 75: asked by the machine and not by you
  esac
}

babysit() {
  local now code='' failed=0
  if [ "$dry" ]; then create; setup; start; echo '# when the slice is lost: this, and then all of the above again'; delete; return; fi
  while true; do
    now=$(state)
    case $now in
      none) create ;;
      ACTIVE) look ;;
      SUSPENDED | FAILED | PREEMPTED) echo "tpu: $name is $now: making it again" >&2; failed=0; delete; create ;;
    esac
    case $code in
      '') sleep "$poll" ;;
      0) delete; return ;;
      75) echo "tpu: stopped, with a checkpoint: babysit or run continues it" >&2; return 75 ;;
      *) echo "tpu: the run ended with $code: see the logs, then delete $name" >&2; return "$code" ;;
    esac
  done
}

case $verb in
  run) start ;;
  status) run gcloud compute tpus queued-resources describe "$name" "${place[@]}" --format='value(state.state)'; states ;;
  logs | follow) worker 0 "$verb" ;;
  stop) worker all stop ;;
  *) "$verb" ;;
esac
