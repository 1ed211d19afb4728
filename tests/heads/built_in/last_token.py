"""The head `last_token`."""

from tests.heads.stated import Stated, itself

STATED = Stated(51, "pools", itself)
