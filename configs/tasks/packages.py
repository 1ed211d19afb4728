"""Which package a paragraph of a docstring comes from: four classes, for a model of `jaxenc demo`.

    jaxenc demo --finetune

The paragraphs are collected from the Python of this machine (`jaxenc/tasks/packages.py`). The settings suit a model of width 128: with
BERT's learning rates so small a model hardly changes.
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.optim.optimizer import OptimConfig
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.files import FilesConfig
from jaxenc.tasks.packages import PACKAGES
from jaxenc.tasks.tuning import FineTune, TuneConfig


def get_config() -> ConfigDict:
    tune = FineTune(
        task=Classify(labels=PACKAGES),
        data=FilesConfig(train="train.jsonl", dev="dev.jsonl"),
        train=TuneConfig(epochs=3.0, batch=32, length=64, precision="float32"),
        optim=OptimConfig(lr=1e-3, warmup=0),
    )
    return recipe(tune)
