"""What jax keeps private and jaxenc needs is where private.py takes it from, and jax has no public one by now."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import jax

from jaxenc.processes import private

PACKAGE = Path(private.__file__).parents[1]
# Of the store's client, what barriers.py, watch.py, cluster.py and Orbax' waiting call.
CALLED = {"key_value_set", "blocking_key_value_get", "key_value_dir_get"}


def test_one_file_reads_what_jax_keeps_private() -> None:
    readers = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if "jax._src" in path.read_text()}
    readers -= {"processes/rank.py", "processes/tpu.py"}  # they name it as a source, in words
    assert readers == {"processes/private.py"}


def test_the_store_is_where_it_was() -> None:
    missing = CALLED - set(dir(private._jax.DistributedRuntimeClient))
    assert not missing, f"jax {jax.__version__}: the coordination service's client lacks {sorted(missing)}: see private.store"
    assert {"client", "coordinator_address"} <= set(dir(private.distributed.global_state)), "see private.store and private.coordinator"


def test_jax_has_no_public_store() -> None:
    """`jax.distributed` is where one would be."""
    public = {name for name in dir(jax.distributed) if not name.startswith("_")}
    new = public - {"initialize", "is_initialized", "shutdown"}
    assert not new, f"jax.distributed has {sorted(new)}: if that reads and writes keys, private.store can be replaced by it"


def test_gloo_listens_where_private_says_and_jax_has_no_public_way() -> None:
    names = inspect.signature(private.xla_bridge.make_cpu_client).parameters
    assert "collectives" in names and callable(private.xla_bridge.register_backend_factory), "see private.listen_for_gloo"
    assert "hostname" in private._jax.make_gloo_tcp_collectives.__doc__, "see private.listen_for_gloo"
    asked = {name for name in dir(jax.config) if "gloo" in name or "cpu_collectives" in name}
    new = asked - {"jax_cpu_collectives_implementation"}
    assert not new, f"jax.config has {sorted(new)}: if that says where Gloo listens, private.listen_for_gloo can be replaced by it"
    assert "hostname" not in inspect.getsource(private.xla_bridge.make_cpu_client), "jax passes a host name to Gloo: see where it is from"


def test_jax_says_in_the_environment_that_it_sees_tpus(tmp_path: Path) -> None:
    """`tpu.rank` reads TPU_ML_PLATFORM for it. JAX_FORCE_TPU_INIT stands for the chips, and a file for libtpu."""
    library = tmp_path / "libtpu.so"
    library.touch()
    assert "TPU_ML_PLATFORM" not in os.environ
    script = "import os, jax; print(os.environ.get('TPU_ML_PLATFORM'))"
    forced = {**os.environ, "JAX_FORCE_TPU_INIT": "1", "TPU_LIBRARY_PATH": str(library)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=forced, timeout=120, check=True)
    assert done.stdout == "JAX\n", "tpu.rank no longer knows whether jax sees TPUs"
