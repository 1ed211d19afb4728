"""A frozen encoder with a BiLSTM on a learned mix of its layers: ELMo's published use (Peters et al. 2018, sections 3.2 to 3.4), for any
family. `tasks/frozen:words` gives tags of single words, `tasks/frozen:entities` those of entities, `tasks/frozen:texts` classes of texts.

    jaxenc finetune --config tasks/frozen:words --config.data.train=train.conllu --config.data.dev=dev.conllu \\
        --init-from MODEL --workdir RUNS

Dropout of 0.5 on the features is that of allennlp modules/elmo.py, the penalty of 0.001 on the mix that of section 3.4, and 200 cells are
those of its tagger of named entities (appendix A), which has two such layers and a CRF; the CRF is not implemented here. Adam at 1e-3.
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.errors import UserError
from jaxenc.objectives.probe import FrozenConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.tasks.classify import Classify
from jaxenc.tasks.tag import Tag
from jaxenc.tasks.tuning import FineTune, TuneConfig

TASKS = {"words": Tag(scheme="none"), "entities": Tag(), "texts": Classify()}


def get_config(task: str = "words") -> ConfigDict:
    if task not in TASKS:
        raise UserError(
            f"{task} is not a task of this recipe", "--config tasks/frozen", f"name tasks/frozen:{', tasks/frozen:'.join(TASKS)}"
        )
    run = FineTune(
        task=TASKS[task],
        frozen=FrozenConfig(reader="bilstm", penalty=0.001, dropout=0.5),
        train=TuneConfig(epochs=10.0, warmup=0.0),
        optim=OptimConfig(lr=1e-3, warmup=0, schedule="constant", weight_decay=0.0, decay_exclude=()),
    )
    return recipe(run)
