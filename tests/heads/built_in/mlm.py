"""The head `mlm`."""

from tests.heads.stated import Stated, likeliest

STATED = Stated(33, "vocabulary", likeliest)
