# shellcheck shell=bash
# Whether a run that ended starts again: what launch/keep_running.sh and launch/local.sh decide alike. Sourced, not run. Both set `workdir`
# and `restarts`; docs/reliability.md has the exit codes.
# shellcheck disable=SC2154 # those names

is_final() { # EXIT_CODE: whether no restart would help: done, bad input, diverged, a command that cannot start
  case $1 in 0 | 2 | 3 | 126 | 127) ;; *) return 1 ;; esac
}

steps() { # WORKDIR: a line FOLDER/STEP for each checkpoint, FOLDER being `run` or, of a fine-tuning, that of a seed
  case $1 in
    '') ;;
    *://*) "${PYTHON:-python3}" - "$1" <<'PYTHON' ;;
import glob
import sys

try:
    import fsspec

    disk, path = fsspec.core.url_to_fs(sys.argv[1].rstrip("/"))
    # At an address a step is whole once its CHECKSUMS.json is there.
    for above in ("", "/seed_*"):
        for file in disk.glob(f"{glob.escape(path)}{above}/checkpoints/*/CHECKSUMS.json"):
            *_, folder, _, step, _ = file.split("/")
            print(f"{folder if above else 'run'}/{step}")
except Exception as error:
    print(f"{sys.argv[1]}: checkpoints cannot be listed, and count as none ({error or type(error).__name__})", file=sys.stderr)
PYTHON
    *)
      find "$1/checkpoints" -maxdepth 1 -type d -printf 'run/%f\n' 2>/dev/null
      find "$1" -mindepth 3 -maxdepth 3 -path "*/seed_*/checkpoints/*" -type d -printf '%P\n' 2>/dev/null | sed 's,/checkpoints/,/,' ;;
  esac
}

saved() { # WORKDIR: `NUMBER TEXT`; a newer checkpoint, of whichever seed, makes the number larger, and the text names the newest of each
  steps "$1" | sort -V | awk -F/ '
    $2 !~ /^[0-9]+$/ { next }
    !($1 in newest) { order[++folders] = $1 }
    { newest[$1] = $2 }
    END {
      for (i = 1; i <= folders; i++) {
        name = order[i]
        number += newest[name] + 1
        text = text (i > 1 ? ", " : "") (name == "run" ? "" : name " ") "step " newest[name]
      }
      print number + 0, folders ? text : "step -1"
    }'
}

idle=-1 last='' newest='' # restarts in a row without a newer checkpoint, -1 before the first end; what `saved` said before the last start

starting() { # before each start
  [ -n "$last" ] || read -r last newest < <(saved "$workdir")
}

may_restart() { # WHO EXIT_CODE [WHAT]: after each end; says why it gives up, or that it starts WHAT again
  local now
  read -r now newest < <(saved "$workdir")
  if [ "$now" -gt "$last" ]; then idle=0; else idle=$((idle + 1)); fi
  last=$now
  if [ "$idle" -ge "$restarts" ]; then
    echo "$1 ended with $2; $restarts restarts brought no newer checkpoint than $newest: giving up" >&2
    return 1
  fi
  echo "$1 ended with $2: starting ${3:+$3 }again (newest checkpoint: $newest)" >&2
}
