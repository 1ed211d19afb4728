#!/usr/bin/env bash
# What tpu.sh runs on every worker of a slice, in ~/jaxenc-RUN, where it has unpacked this checkout. You need not type it.
#
#   worker.sh setup EXTRAS           makes venv/ and installs jaxenc there: the wheel beside this checkout, or the checkout
#   worker.sh start WORKDIR -- CMD   starts CMD under launch/keep_running.sh in a systemd unit that outlives ssh; does nothing if it runs
#   worker.sh state                  prints `jaxenc-state: STATE on HOST`; the states are running, ended CODE, stopped, absent
#   worker.sh logs, follow           its output, once or as it comes
#   worker.sh stop                   sends TERM, and the run ends with a checkpoint
#
# The file `command.sh` holds the command: among systemd's arguments systemd would expand each $ once more. `ended` holds its exit code, and
# `asked` says that someone stopped it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=launch/common.sh
source launch/common.sh
verb=$1 unit=$(basename "$PWD")
shift

setup() { # EXTRAS
  local source=$PWD wheel
  for wheel in jaxenc-*.whl; do [ ! -e "$wheel" ] || source=$PWD/$wheel; done
  # The Python of the image may be older than jaxenc needs; uv brings one.
  PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --quiet --user uv
  # gcsfs: what fsspec needs for gs://.
  python3 -m uv venv --quiet --clear --python 3.12 venv
  python3 -m uv pip install --quiet --python venv/bin/python 'gcsfs>=2024.6' "jaxenc[$1] @ file://$source"
}

start() { # WORKDIR -- COMMAND
  ! sudo systemctl is-active --quiet "$unit" || return 0
  rm -f ended asked
  workdir=$1
  shift 2
  # Above JAXENC_HEARTBEAT (90 s): whoever crashed starts again when all others have noticed and ended too.
  quoted bash launch/keep_running.sh --wait 120 --workdir "$workdir" -- "$@" > command.sh
  # mixed: TERM goes to keep_running.sh alone, which passes it on; 900 s is what the largest checkpoint may take.
  sudo systemd-run --unit="$unit" --collect --uid="$(id -un)" --working-directory="$PWD" --setenv=HOME="$HOME" \
    --property=KillMode=mixed --property=TimeoutStopSec=900 bash launch/tpu_vm/worker.sh unit
}

unit() { # inside the unit
  export PATH="$PWD/venv/bin:$PATH" PYTHON="$PWD/venv/bin/python"
  # shellcheck source=launch/env/tpu.sh
  source launch/env/tpu.sh
  local code=0 pid=''
  trap '[ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null' TERM
  bash command.sh & pid=$!
  while kill -0 "$pid" 2>/dev/null; do wait "$pid" && code=0 || code=$?; done
  echo "$code" > ended.new && mv ended.new ended
  return "$code"
}

state() {
  local said=absent
  case $(systemctl is-active "$unit" || true) in
    active | activating | deactivating) said=running ;; # deactivating: it saves
    *) if [ -e asked ]; then said=stopped; elif [ -e ended ]; then said="ended $(cat ended)"; fi ;;
  esac
  echo "jaxenc-state: $said on $(hostname)"
}

case $verb in
  setup | start | unit | state) "$verb" "$@" ;;
  logs) sudo journalctl --unit="$unit" --output=cat --lines=200 ;;
  follow) sudo journalctl --unit="$unit" --output=cat --lines=20 --follow ;;
  stop) touch asked && sudo systemctl stop "$unit" ;;
  *) fail "$verb: setup, start, state, logs, follow or stop" ;;
esac
