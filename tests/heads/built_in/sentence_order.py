"""The head `sentence_order`."""

from tests.heads.stated import Stated, softmax

STATED = Stated(50, "text", softmax)
