"""The head `rtd`."""

from tests.heads.stated import Stated, sigmoid

STATED = Stated(41, "tokens", sigmoid)
