"""A tag for each word: named entities and chunks, or parts of speech after a colon, as in tasks/tag:words.

    jaxenc finetune --config tasks/tag --config.data.train=train.conll --config.data.dev=dev.conll --init-from MODEL --workdir RUNS
    jaxenc finetune --config tasks/tag:words --config.data.train=en-train.conllu.gz --config.data.dev=en-dev.conllu \\
        --init-from MODEL --workdir RUNS

A file of columns has one word and its tag per line and a blank line after each sentence (CoNLL, CoNLL-U); records have a list of words and
a list of tags. Entities are scored by the F1 of whole entities, words by the share of right tags. The hyper-parameters are those that the
authors of the model's family published for GLUE (`jaxenc/families/*/hyperparameters.py`): Devlin et al. 2018, section 5.3, give none of
their own for NER.
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.errors import UserError
from jaxenc.tasks.tag import Tag
from jaxenc.tasks.tuning import FineTune

SCHEMES = {"entities": "bio", "words": "none"}


def get_config(argument: str = "entities") -> ConfigDict:
    if argument not in SCHEMES:
        raise UserError(f"{argument} is not a kind of tags", "--config tasks/tag", "name tasks/tag:entities or tasks/tag:words")
    return recipe(FineTune(task=Tag(scheme=SCHEMES[argument]), published="text"))
