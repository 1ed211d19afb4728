"""The head `tags`."""

from tests.heads.stated import Stated, likeliest

STATED = Stated(37, "tokens", likeliest)
