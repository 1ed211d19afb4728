"""A left-to-right BERT (Devlin et al. 2018, section 5.1, "LTR & No NSP"): bert/small with causal attention, which predicts the next token.

    jaxenc pretrain --config ablations/left_to_right --config.data.path=DATA --workdir RUN

It shows what attention in both directions is worth; compare it with bert/small on the same data for the same number of steps. Held-out
losses on one H200: 3.890 nats a token from the left context, 2.558 a masked token from both (docs/benchmarks.md). The paper compares
fine-tuned tasks (table 5).
"""

import dataclasses

from jaxenc.configs import recipe
from jaxenc.configs.bert import small
from ml_collections import ConfigDict

from jaxenc.objectives.causal import CausalConfig
from jaxenc.training.run import Run, from_dict


def get_config() -> ConfigDict:
    run: Run = from_dict(small.get_config().to_dict())
    return recipe(dataclasses.replace(run, objective=CausalConfig(), model=dataclasses.replace(run.model, attention="causal")))
