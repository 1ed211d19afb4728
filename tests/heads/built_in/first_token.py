"""The head `first_token`."""

from tests.heads.stated import Stated, itself

STATED = Stated(56, "pools", itself)
