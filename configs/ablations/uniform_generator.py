"""ELECTRA with a generator that has learned nothing: every id equally likely in the chosen places.

    jaxenc pretrain --config ablations/uniform_generator --config.data.path=DATA --workdir RUN

ELECTRA-small otherwise, with `uniform_generator` of google-research/electra:configure_pretraining.py; 13,549,057 parameters, all of them
the discriminator's. Such tokens are easier to detect than a generator's: expect a higher `rtd_auc` than electra/small's. Not yet run here.
"""

import dataclasses

from jaxenc.configs import recipe
from jaxenc.configs.electra import published_small
from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    run = published_small()
    return recipe(dataclasses.replace(run, objective=dataclasses.replace(run.objective, generator="uniform")))
