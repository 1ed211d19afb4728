"""Replace MLM (Clark et al. 2020, section 3.4): BERT's loss, with a generator's samples in the place of [MASK].

    jaxenc pretrain --config ablations/replace_mlm --config.data.path=DATA --workdir RUN

ELECTRA-small otherwise: it shows how much BERT loses because [MASK] occurs in pretraining only. The paper's average on GLUE's dev sets, of
the base size (table 5): 82.4 with it; ELECTRA has 85.0 and BERT 82.2. Not yet run here.
"""

from jaxenc.configs import recipe
from jaxenc.configs.ablations import replaced_mlm
from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    return recipe(replaced_mlm("chosen"))
