"""The head `next_token`."""

from tests.heads.stated import Stated, likeliest

STATED = Stated(49, "vocabulary", likeliest)
