"""Data folders, as of the tests of training."""

from tests.training.conftest import data, other_data

__all__ = ["data", "other_data"]
