"""Tests that do what the advice of an error says, read from the error itself, and repeat what failed."""
