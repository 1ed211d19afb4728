"""Classification of your own texts, one or two columns of a .tsv, .csv, .jsonl or Parquet file.

    jaxenc finetune --config tasks/text --config.data.train=train.tsv --config.data.dev=dev.tsv --text sentence --label label
        --init-from MODEL --workdir RUNS

The hyper-parameters are BERT's: 3 epochs of batches of 32 at 3e-5 with a warm-up of a tenth (google-research/bert run_classifier.py).
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.tasks.tuning import FineTune


def get_config() -> ConfigDict:
    return recipe(FineTune())
