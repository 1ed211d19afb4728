"""The head `classifier`."""

from tests.heads.stated import Stated, softmax

STATED = Stated(36, "text", softmax)
