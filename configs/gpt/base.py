"""GPT (Radford et al. 2018): 12 layers, 768 wide, 12 heads, rows of 512, 116,534,784 parameters.

    jaxenc pretrain --config gpt/base --config.data.path=DATA --workdir RUN

Published: 100 epochs of BooksCorpus (paper, section 4.1); fine-tuned on ROCStories 85.8, the median of ten runs
(openai/finetune-transformer-lm README.md). The softmax is tied to the token table and has no parameters of its own. Not yet run here. On a
GPU, attention with dropout 0.1 runs in jaxenc's own kernel (`train.attention=auto`).
"""

from jaxenc.configs import recipe
from jaxenc.configs.gpt import published
from ml_collections import ConfigDict

from jaxenc.families.gpt.sizes import GPT, gpt


def get_config() -> ConfigDict:
    return recipe(published(gpt(*GPT["base"])))
