#!/usr/bin/env bash
# A run on TPUs of a GKE cluster that XPK made (xpk cluster create), through `xpk workload create`.
#
#   bash launch/gke/xpk.sh --name RUN --workdir gs://BUCKET/RUN --cluster CLUSTER --zone ZONE --type v5litepod-16 --image IMAGE [--slices 1]
#     [--project PROJECT] [--restarts 10] [--spot | --reservation NAME] [--dry-run] -- jaxenc pretrain --config ...
#
# XPK restarts the run after the exit codes that are named below, and after 42 and 127 to 255, which it adds itself: not after 0, 2 (bad
# input), 3 (diverged) and 126. It counts 75 among the --restarts, and the loss of a node too. To look at it: xpk workload list, kubectl logs;
# to end it: xpk workload delete.
set -euo pipefail
# shellcheck source=launch/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
cluster='' zone='' project='' type='' image='' slices=1 restarts=10 spot='' reservation=''
options 'cluster zone project type image slices restarts spot! reservation' "$@"
settle
case "${command[*]}" in *$'\n'*) fail "a line break in the command: XPK's manifest cannot hold one" ;; esac
for option in cluster zone type image; do [ -n "${!option}" ] || fail "--$option is missing"; done
number --slices "$slices"
number --restarts "$restarts"
# XPK runs it with bash in a pod, where Kubernetes reads $(NAME) as a variable and $$ as one dollar. exec: TERM reaches jaxenc itself.
inner="exec /opt/jaxenc/launch/docker/entrypoint.sh $(quoted "${command[@]}")"
run xpk workload create --workload "$name" --cluster "$cluster" --zone "$zone" ${project:+--project "$project"} --tpu-type "$type" \
  --num-slices "$slices" --docker-image "$image" --max-restarts "$restarts" --restart-on-exit-codes 1,4-125 \
  --termination-grace-period-seconds 600 ${spot:+--spot} ${reservation:+--reservation "$reservation"} --command "${inner//\$/\$\$}"
