"""The head `multilabel`."""

from tests.heads.stated import Stated, sigmoid

STATED = Stated(58, "text", sigmoid)
