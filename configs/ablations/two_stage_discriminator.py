"""ELECTRA in two stages, the second (Clark et al. 2020, section 3.2): a discriminator that starts from a generator.

    jaxenc pretrain --config ablations/two_stage_discriminator --config.data.path=DATA --workdir RUN \\
        --init-from GENERATOR --init-map discriminator=generator --init-map generator/embeddings=embeddings

GENERATOR is the --workdir of a run of ablations/two_stage_generator, whose two networks are of one size as they are here. The generator is
frozen and has its own tables; the discriminator starts from the same weights and is trained on its samples, with its own loss alone. A
frozen network has no backward pass. According to the paper, without such a start the discriminator sometimes learns nothing beyond the
majority class. Not yet run here.
"""

import dataclasses

from jaxenc.configs import recipe
from jaxenc.configs.ablations import two_stage
from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    run = two_stage("none")
    objective = dataclasses.replace(run.objective, mlm_coef=0.0)
    optim = dataclasses.replace(run.optim, freeze=("generator/.*", "mlm/.*"))
    return recipe(dataclasses.replace(run, objective=objective, optim=optim))
