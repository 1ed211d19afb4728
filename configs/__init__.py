"""Recipes: `get_config() -> ConfigDict`, made from a Run, one file a recipe. `--config bert/base` names bert/base.py here.

A recipe that takes what follows a colon, as in `bert/sizes:4x512`, is `get_config(argument='')`.
"""

from typing import Any

from ml_collections import ConfigDict

from jaxenc import config


def recipe(run: Any) -> ConfigDict:
    """The ConfigDict of a Run or a FineTune, whose fields the command line overrides by name and type."""
    return ConfigDict(config.to_dict(run))
