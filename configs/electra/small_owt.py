"""ELECTRA-small on OpenWebText, which the paper's authors give as the run to reproduce (google-research/electra README.md).

    jaxenc data --input OPENWEBTEXT --tokenizer DIR --out DATA
    jaxenc pretrain --config electra/small_owt --config.data.path=DATA --workdir RUN

The settings are those of electra/small; only the data differs. OPENWEBTEXT is text files of the corpus, a document between blank lines, and
DIR holds BERT's uncased vocabulary. Published: about four days on one V100; fine-tuned, dev sets, CoLA 56.8, SST-2 88.3, MRPC 87.4, STS-B
86.8, QQP 88.3, MNLI 78.9, QNLI 87.9, RTE 68.5, and 200,000 steps, ten hours, already give decent scores (README.md). Not yet run here to
the end.
"""

from jaxenc.configs import recipe
from jaxenc.configs.electra import published_small
from ml_collections import ConfigDict


def get_config() -> ConfigDict:
    return recipe(published_small())
