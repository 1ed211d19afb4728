#!/usr/bin/env bash
# Builds the documentation in docs/_build; a warning or a dead link between pages is an error. Needs `pip install -e '.[docs]'`.
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${PYTHON:-python3}" -m sphinx --fail-on-warning --keep-going --fresh-env --quiet -b html docs docs/_build "$@"
