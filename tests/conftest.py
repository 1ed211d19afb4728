"""Every test runs on eight CPU devices; set before anything imports jax. The compiler's slower passes are off: tests compile more than
they run, and no bound of theirs depends on the passes."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
