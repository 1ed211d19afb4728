"""The right one of several texts: SWAG (Zellers et al. 2018), RACE (Lai et al. 2017) or CommonsenseQA (Talmor et al. 2019).

    jaxenc finetune --config tasks/choice:swag --config.data.path=SWAG --init-from MODEL --workdir RUNS

The name after the colon is swag, race or commonsense_qa. data.path is a folder with the files as they are distributed, or a Hugging Face
dataset on disk. The hyper-parameters are those that the authors of the model's family published for SWAG and RACE, and for CommonsenseQA
those for GLUE (`jaxenc/families/*/hyperparameters.py`).
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.tasks import choice_sets, published
from jaxenc.tasks.tuning import FineTune


def get_config(argument: str = "swag") -> ConfigDict:
    task, files = choice_sets.task(argument)
    return recipe(FineTune(task=task, data=files, published=argument if argument in published.KNOWN else "text"))
