"""ELMo 5.5B: the original's size on 5.5 billion words, Wikipedia (1.9 B) and news of WMT 2008-2012 (3.6 B) (allennlp.org/elmo).

    jaxenc pretrain --config elmo/original_5_5b --config.data.path=DATA --workdir RUN

How long it was trained and which words it predicts is not published: here are ten epochs and the numbers of the original. Not yet run here
to the end.
"""

from jaxenc.configs import recipe
from jaxenc.configs.elmo import published
from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    return recipe(published("original_5_5b", tokens=5_500_000_000))
