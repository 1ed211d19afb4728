#!/usr/bin/env bash
# Runs the tests of faults and prints their table in Markdown. --full: the full counts (40 minutes on 2 cores). Other arguments go to pytest.
# PYTHON is an interpreter that has jaxenc and its test requirements (after `bash tests/run.sh`: .venv/bin/python).
set -uo pipefail
cd "$(dirname "$0")/../.."

python=${PYTHON:-.venv/bin/python}
command -v "$python" >/dev/null || { echo "tests/faults: no $python: run \`bash tests/run.sh\` first, or set PYTHON" >&2; exit 2; }
if [ "${1:-}" = --full ]; then shift; export JAXENC_TESTS=full; fi
JAXENC_FAULTS_TABLE=$(mktemp) || exit 1
export JAXENC_FAULTS_TABLE
trap 'rm -f "$JAXENC_FAULTS_TABLE"' EXIT
"$python" -m pytest -q tests/faults "$@" >&2
code=$?
printf '| fault | count | outcome | seconds |\n| --- | ---: | --- | ---: |\n'
sort -V "$JAXENC_FAULTS_TABLE"
exit $code
