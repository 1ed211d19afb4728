"""All-Tokens MLM (Clark et al. 2020, section 3.4): Replace MLM for every token, with a copy mechanism.

    jaxenc pretrain --config ablations/all_tokens_mlm --config.data.path=DATA --workdir RUN

ELECTRA-small otherwise: it shows how close a softmax over the vocabulary for every token comes to the discriminator. These softmaxes add a
third to the FLOPs of a step, and the backward pass recomputes them. The paper's average on GLUE's dev sets, of the base size (table 5):
84.3 with it; ELECTRA has 85.0 and Replace MLM 82.4. Not yet run here.
"""

from jaxenc.configs import recipe
from jaxenc.configs.ablations import replaced_mlm
from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    return recipe(replaced_mlm("all"))
