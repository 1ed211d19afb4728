# shellcheck shell=bash
# How far a run has come, for the scripts that start it again. Sourced, not run; it needs Python and fsspec for an address only.

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
    for file in disk.glob(glob.escape(path) + "/checkpoints/*/CHECKSUMS.json"):
        print("run/" + file.split("/")[-2])
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
