"""How much the tests do. `JAXENC_TESTS` says it and tests/run.sh sets it; pytest.ini says what each choice leaves out."""

import os

CHOICE = os.environ.get("JAXENC_TESTS") or "short"
if CHOICE not in ("short", "second", "full"):
    raise ValueError(f"JAXENC_TESTS is {CHOICE!r}: it takes short, second or full")
# Everything, in full counts, with new random inputs.
FULL = CHOICE == "full"
# What can differ on another version of Python and jax.
SECOND = CHOICE == "second"
