#!/usr/bin/env bash
# Makes what the tests need in .venv and runs them all; where a Python 3.12 is found, the fast ones there too, in .venv-3.12.
# PYTHON chooses the first interpreter (3.11 or newer). Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

install() { # interpreter, environment
  [ -x "$2/bin/python" ] || "$1" -m venv "$2"
  "$2/bin/python" -c 'import jaxenc.configs, pytest, tensorboardX, xdist' 2>/dev/null ||
    { "$2/bin/python" -m pip install --quiet --upgrade pip && PYTHONWARNINGS=ignore "$2/bin/python" -m pip install --quiet -e '.[dev,log]'; }
}

find_312() { # a Python 3.12 that runs: on the PATH or where pyenv keeps them
  local candidate
  for candidate in python3.12 "$HOME"/.pyenv/versions/3.12.*/bin/python3.12; do
    if "$candidate" -c '' 2>/dev/null; then echo "$candidate"; return; fi
  done
}

install "${PYTHON:-python3}" .venv
.venv/bin/python -m pytest -q -n 2 "$@"

second=$(find_312)
if [ -n "$second" ] && [ "$(.venv/bin/python -c 'import sys; print(sys.version_info[:2] == (3, 12))')" = False ]; then
  install "$second" .venv-3.12
  .venv-3.12/bin/python -m pytest -q -n 2 -m 'not slow' "$@"
else
  echo "tests: no second Python (3.12) on this machine, so only $(.venv/bin/python --version) ran" >&2
fi
