# shellcheck shell=bash
# Whether a run that ended starts again: what launch/keep_running.sh and launch/local.sh decide alike. Sourced, not run. Both set `workdir`
# and `restarts`; docs/reliability.md has the exit codes.
# shellcheck disable=SC2154 # those names

is_final() { # EXIT_CODE: whether no restart would help: done, bad input, diverged, a command that cannot start
  case $1 in 0 | 2 | 3 | 126 | 127) ;; *) return 1 ;; esac
}

steps() { # the steps in workdir/checkpoints, one a line; at a URL a step is complete once its CHECKSUMS.json is there
  case $workdir in
    *://*) "${PYTHON:-python3}" - "$workdir/checkpoints/*/CHECKSUMS.json" <<'PYTHON' ;;
import sys

import fsspec

disk, files = fsspec.core.url_to_fs(sys.argv[1])
print(*(path.split("/")[-2] for path in disk.glob(files)), sep="\n")
PYTHON
    *) find "$workdir/checkpoints" -maxdepth 1 -type d -printf '%f\n' 2>/dev/null ;;
  esac
}

newest_step() { # the newest checkpoint, or -1
  local step
  step=$(steps | grep -xE '[0-9]+' | sort -n | tail -n 1)
  echo "${step:--1}"
}

idle=-1 last='' # restarts in a row without a newer checkpoint (the first start is no restart); the newest step before the last start

starting() { # before each start
  last=${last:-$(newest_step)}
}

may_restart() { # WHO EXIT_CODE [WHAT]: after each end; says why it gives up, or that it starts WHAT again
  local step
  step=$(newest_step)
  if [ "$step" -gt "$last" ]; then idle=0; else idle=$((idle + 1)); fi
  last=$step
  if [ "$idle" -ge "$restarts" ]; then
    echo "$1 ended with $2; $restarts restarts brought no newer checkpoint than step $step: giving up" >&2
    return 1
  fi
  echo "$1 ended with $2: starting ${3:+$3 }again (newest checkpoint: step $step)" >&2
}
