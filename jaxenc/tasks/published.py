"""Hyper-parameters of fine-tuning as published."""

from typing import Any

from jaxenc.families.contract import ModelConfig


def numbers(model: ModelConfig, task: str) -> dict[str, Any]:
    """{dotted path: value} of the fields of a FineTune."""
    return {}
