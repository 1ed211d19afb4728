"""The head `spans`."""

from tests.heads.stated import Stated, itself

STATED = Stated(38, "tokens", itself)
