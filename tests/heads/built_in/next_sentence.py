"""The head `next_sentence`."""

from tests.heads.stated import Stated, softmax

STATED = Stated(35, "text", softmax)
