"""`python -m tests.baseline.stopped CONFIG STEP WORKDIR`: trains the run of a config.json and stops it after a step, as SIGTERM does."""

import sys
from pathlib import Path

from jaxenc.cli.recipe import resolve
from tests.training import test_loop

if __name__ == "__main__":
    config, step, workdir = sys.argv[1:]
    assert test_loop.run_until(int(step), resolve(config, []), Path(workdir)) == int(step)
