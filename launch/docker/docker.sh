#!/usr/bin/env bash
# An image of this checkout, and a run in it on this machine.
#
#   bash launch/docker/docker.sh VERB --name RUN [options] [-- jaxenc pretrain ...]
#
#   build    --image IMAGE [--accelerator cpu|gpu|tpu]: from launch/docker/Dockerfile. `docker push IMAGE` takes it to a cluster
#   run      --image IMAGE --workdir DIR [--accelerator ...] [--data DIR] -- COMMAND: in the background, with your user id, under
#            launch/keep_running.sh. --workdir is a folder here, which is /runs/RUN inside, or a URL; --data is /data inside, read-only
#   status, logs, follow
#   stop     ends the run with a checkpoint; `run` continues it
#   delete   ends it now, and removes a container that has ended by itself, which `run` needs
#
# Everywhere: [--dry-run]. gpu needs the NVIDIA Container Toolkit.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=launch/common.sh
source "$root/launch/common.sh"
image='' accelerator=cpu data=''
verb_of 'build run status logs follow stop delete' "$@"
options 'image accelerator data' "${@:2}"
case $accelerator in cpu | gpu | tpu) ;; *) fail "--accelerator is $accelerator: cpu, gpu or tpu" ;; esac
case $verb$image in build | run) fail "--image is missing" ;; esac

full() { # a folder of this machine as docker wants it
  case $1 in *:*) fail "$1: docker takes no : in the name of a folder" ;; /*) printf %s "$1" ;; *) printf %s "$PWD/$1" ;; esac
}

start() {
  local mounts=() devices=() folder
  case " ${command[*]:-} " in *' --workdir'[=\ ]*) fail "--workdir goes before --: inside the container the folder has another name" ;; esac
  case $workdir in
    *://* | '') ;;
    *)
      folder=$(full "$workdir")
      run mkdir -p "$folder" # docker would make it as root
      mounts=(--volume "$folder:/runs/$name") workdir=/runs/$name ;;
  esac
  settle
  [ -z "$data" ] || [ -d "$data" ] || fail "--data is $data: there is no such folder here (a URL goes into the command)"
  [ -z "$data" ] || data=$(full "$data")
  [ -z "$data" ] || mounts+=(--volume "$data:/data:ro")
  case $accelerator in
    gpu) devices=(--gpus all --ipc=host) ;; # NCCL shares memory between GPUs
    tpu) devices=(--privileged --net=host) ;; # libtpu opens the chips and asks the VM's metadata server
  esac
  run docker run --detach --name "jaxenc-$name" --user "$(id -u):$(id -g)" --init --stop-timeout 900 ${devices[@]+"${devices[@]}"} \
    ${mounts[@]+"${mounts[@]}"} "$image" bash /opt/jaxenc/launch/keep_running.sh --workdir "$workdir" -- "${command[@]}"
}

case $verb in
  build) run docker build --file "$root/launch/docker/Dockerfile" --build-arg ACCELERATOR="$accelerator" --tag "$image" "$root" ;;
  run) start ;;
  status) run docker ps --all --filter "name=^jaxenc-$name\$" ;;
  logs) run docker logs --tail 200 "jaxenc-$name" ;;
  follow) run docker logs --tail 20 --follow "jaxenc-$name" ;;
  stop) run docker stop "jaxenc-$name"; run docker rm "jaxenc-$name" ;;
  delete) run docker rm --force "jaxenc-$name" ;;
esac
