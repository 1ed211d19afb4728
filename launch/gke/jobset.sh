#!/usr/bin/env bash
# A run on Kubernetes (GKE) as a JobSet, which restarts all pods of the run together. The cluster needs JobSet 0.10 or newer.
#
#   bash launch/gke/jobset.sh VERB --name RUN [--namespace N] [options] [-- jaxenc pretrain ...]
#
#   run      --workdir gs://BUCKET/RUN --image IMAGE (launch/docker) [--spot] [--account SERVICE_ACCOUNT] [--restarts 10], one of
#            TPU: --tpu tpu-v5-lite-podslice --topology 4x4 [--slices 1] [--chips-per-host 4]
#            GPU: --gpu nvidia-h100-80gb --nodes 2 [--gpus-per-node 8]
#            CPU: --nodes 2
#            and -- COMMAND
#   status, logs, follow
#   stop     the pods end with a checkpoint; `resume` continues the run
#   delete   removes the JobSet; also needed before `run` can continue a run whose JobSet has ended, which kubectl does not restart
#
# Everywhere: [--dry-run]. Exit 75 and nodes that are taken away restart the run, as often as it takes. A crash restarts it --restarts times in
# all. 2, 3, 126 and 127 end it. PYTHON renders jobset.yaml.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=launch/common.sh
source "$here/../common.sh"
namespace=default image='' account='' restarts=10 spot='' tpu='' topology='' slices=1 chips_per_host=4 gpu='' nodes='' gpus_per_node=8
verb_of 'run status logs follow stop resume delete' "$@"
options 'namespace image account restarts spot! tpu topology slices chips-per-host gpu nodes gpus-per-node' "${@:2}"

kube() { run kubectl --namespace="$namespace" "$@"; }
suspend() { kube patch jobset "$name" --type=merge --patch="{\"spec\":{\"suspend\":$1}}"; }

apply() {
  local manifest
  settle
  [ "$image" ] || fail "--image is missing: launch/docker/docker.sh builds one"
  case "${tpu:+tpu}${nodes:+nodes}" in
    tpu) [[ $topology =~ ^[1-9][0-9]*(x[1-9][0-9]*)+$ ]] || fail "--topology is '$topology': write 4x4 or 2x2x4, the chips of a slice" ;;
    nodes) ;;
    *) fail "give --tpu and --topology, or --nodes with or without --gpu" ;;
  esac
  number --slices "$slices"; number --nodes "${nodes:-1}"; number --chips-per-host "$chips_per_host"
  number --gpus-per-node "$gpus_per_node"; number --restarts "$restarts"
  manifest=$("${PYTHON:-python3}" "$here/render.py" --name="$name" --image="$image" --account="$account" --restarts="$restarts" \
    ${spot:+--spot} --tpu="$tpu" --topology="$topology" --slices="$slices" --chips-per-host="$chips_per_host" --gpu="$gpu" \
    --nodes="${nodes:-1}" --gpus-per-node="$gpus_per_node" -- "${command[@]}")
  if [ "$dry" ]; then
    printf "%s <<'JOBSET'\n%s\nJOBSET\n" "$(kube apply --filename=-)" "$manifest"
  else
    kube apply --filename=- <<< "$manifest"
  fi
}

# Process 0 writes what there is to read: it runs in the first pod of the first Job.
first="jobset.sigs.k8s.io/jobset-name=$name,jobset.sigs.k8s.io/job-index=0,batch.kubernetes.io/job-completion-index=0"
case $verb in
  run) apply ;;
  status) kube get jobset "$name"; kube get pods --selector="jobset.sigs.k8s.io/jobset-name=$name" --output=wide ;;
  logs) kube logs --selector="$first" --container=jaxenc --tail=200 ;;
  follow) kube logs --selector="$first" --container=jaxenc --tail=20 --follow ;;
  stop) suspend true ;;
  resume) suspend false ;;
  delete) kube delete jobset "$name" ;;
esac
