"""The head `beam_spans`."""

from tests.heads.stated import Stated, itself

STATED = Stated(61, "search", itself)
