"""The head `regressor`."""

from tests.heads.stated import Stated, itself

STATED = Stated(57, "text", itself)
