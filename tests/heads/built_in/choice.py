"""The head `choice`."""

from tests.heads.stated import Stated, softmax

STATED = Stated(59, "text", softmax)
