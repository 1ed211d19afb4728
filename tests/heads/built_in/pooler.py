"""The head `pooler`."""

from tests.heads.stated import Stated, itself

STATED = Stated(34, "pools", itself)
