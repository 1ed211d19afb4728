"""The head `summary`."""

from tests.heads.stated import Stated, itself

STATED = Stated(45, "pools", itself)
