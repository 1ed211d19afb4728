"""The head `lm`."""

from tests.heads.stated import Stated, likeliest

STATED = Stated(44, "vocabulary", likeliest)
