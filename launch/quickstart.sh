#!/usr/bin/env bash
# From nothing but Python, pip and git to a trained encoder and a classifier: makes .venv in this checkout, installs jaxenc there and runs
# `jaxenc demo --finetune`. Run it again and it continues from its checkpoint.
#
#   bash launch/quickstart.sh [WORKDIR]      relative to this checkout; runs/demo by default
#
# PYTHON chooses the interpreter (3.11 or newer).
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
  -h | --help) awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' launch/quickstart.sh; exit ;;
  -*) echo "quickstart: $1: it takes a work directory and no options" >&2; exit 2 ;;
esac
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  { echo "quickstart: $("$python" --version) is too old: set PYTHON to a Python 3.11 or newer" >&2; exit 2; }
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -c 'import filelock, jaxenc.configs, sklearn, tensorboardX' 2>/dev/null ||
  { .venv/bin/python -m pip install --quiet --upgrade pip && PYTHONWARNINGS=ignore .venv/bin/python -m pip install --quiet -e '.[log,tasks]'; }
exec .venv/bin/jaxenc demo --finetune --workdir "${1:-runs/demo}"
