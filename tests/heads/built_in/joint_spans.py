"""The head `joint_spans`."""

from tests.heads.stated import Stated, itself

STATED = Stated(60, "search", itself)
