"""Classification of your own texts, one or two columns of a .tsv, .csv, .jsonl or Parquet file.

    jaxenc finetune --config tasks/text --config.data.train=train.tsv --config.data.dev=dev.tsv --text sentence --label label \\
        --init-from MODEL --workdir RUNS

The hyper-parameters are those that the authors of the model's family published for GLUE
(`jaxenc/families/*/hyperparameters.py`). For scores in place of classes add --config.task.kind=regress, for any number of labels
--config.task.kind=multilabel.
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.tasks.tuning import FineTune


def get_config() -> ConfigDict:
    return recipe(FineTune(published="text"))
