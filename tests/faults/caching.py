"""`jaxenc`, as one of several processes that each keep their compiled programs.

jax lets process 0 alone write to the cache, and the key of a program for CPUs holds the devices of its process: without this the others
would find nothing there and compile every program at every start.
"""

import sys
from types import SimpleNamespace

from jax._src import compiler, distributed

from jaxenc.cli import main
from tests import contexts


def keep() -> None:
    """Every process writes what it compiles."""
    contexts.reuse()
    compiler.distributed = SimpleNamespace(global_state=SimpleNamespace(process_id=0, client=distributed.global_state.client))


if __name__ == "__main__":
    keep()
    sys.exit(main.main(sys.argv[1:]))
