"""GLUE's nine tasks and AX (Wang et al. 2018), with the published hyper-parameters of the family of the model.

    jaxenc finetune --config tasks/glue:sst2 --config.data.path=GLUE/SST-2 --init-from MODEL --workdir RUNS --seeds 5

The name after the colon is cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli or ax. data.path is a folder with the files of
gluebenchmark.com, tfds:glue/NAME, or a Hugging Face dataset on disk. The hyper-parameters are those that the authors of the model's family
published (`jaxenc/families/*/hyperparameters.py`); a field that is set on the command line overrules them.
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.tasks import glue
from jaxenc.tasks.tuning import FineTune


def get_config(argument: str = "sst2") -> ConfigDict:
    task, files = glue.task(argument)
    return recipe(FineTune(task=task, data=files, published=argument))
