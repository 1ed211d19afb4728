#!/usr/bin/env bash
# A run on a Slurm cluster, on one node or several.
#
#   bash launch/slurm/slurm.sh VERB --name RUN [options] [-- jaxenc pretrain ...]
#
#   run      --workdir DIR (on a disk that all nodes see, or a URL) [--nodes 1] [--gpus-per-node 8 | --cpu] [--cpus-per-task 8]
#            [--time 24:00:00] [--partition P] [--account A] -- COMMAND. Other options of sbatch: by its variables, such as SBATCH_QOS
#   status, logs, follow
#   stop     ends the run with a checkpoint, and it is not started again; the same `run` continues it
#   delete   ends it now, and takes it out of the queue
#
# Everywhere: [--dry-run]. Activate the environment of jaxenc first: sbatch passes your PATH on. The output is in RUN.log of the folder where
# you type `run`. One task a node uses all its GPUs, and the tasks find each other by Slurm's variables. Exit 75 puts the job back in the
# queue under the same number, a crash is tried again within the job, other exit codes end it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=launch/common.sh
source "$root/launch/common.sh"
nodes=1 gpus_per_node=8 cpus_per_task=8 time='' partition='' account='' cpu=''
verb_of 'run status logs follow stop delete' "$@"
options 'nodes gpus-per-node cpus-per-task time partition account cpu!' "${@:2}"

submit() {
  local accelerator=gpu
  settle
  number --nodes "$nodes"
  number --gpus-per-node "$gpus_per_node"
  number --cpus-per-task "$cpus_per_task"
  if [ "$cpu" ]; then accelerator=cpu gpus_per_node=''; fi
  [ "$dry" ] || command -v -- "${command[0]}" >/dev/null || fail "${command[0]}: there is no such command; activate the environment that has it"
  # singleton: a run that is submitted twice waits for itself instead of writing to its work directory twice.
  run sbatch --job-name="$name" --dependency=singleton --output="$name.log" --nodes="$nodes" --ntasks-per-node=1 \
    --cpus-per-task="$cpus_per_task" ${gpus_per_node:+--gpus-per-node="$gpus_per_node"} ${time:+--time="$time"} \
    ${partition:+--partition="$partition"} ${account:+--account="$account"} \
    "$root/launch/slurm/job.sbatch" "$root" "$accelerator" "$workdir" "${command[@]}"
}

jobs_of() { if [ "$dry" ]; then echo JOB; else squeue --me --name="$name" --noheader --format=%A; fi; }

stop() {
  local job
  for job in $(jobs_of); do
    run scontrol update JobId="$job" Requeue=0 # the requeue that follows exit 75 is then refused
    run scancel --signal=TERM "$job" # to the steps; a job that still waits is ended by `delete`
  done
}

case $verb in
  run) submit ;;
  status) run squeue --me --name="$name" ;;
  logs) run tail -n 200 "$name.log" ;;
  follow) run tail -n 20 -F "$name.log" ;;
  stop) stop ;;
  delete) run scancel --me --name="$name" ;;
esac
