"""DistilBERT-base (Sanh et al. 2019): 6 layers, 768 wide, 66,985,530 parameters with the masked-token head, distilled from BERT-base.

    jaxenc convert --from hf:BERT --to TEACHER
    jaxenc data --input FILES --tokenizer TEACHER/tokenizer --out DATA
    jaxenc pretrain --config distilbert/base --config.data.path=DATA --config.objective.teacher=TEACHER --workdir RUN

Numbers of train.py in examples/research_projects/distillation of huggingface/transformers, and the paper's batch of 4,000. Three epochs are
6,000 steps for the 4 billion tokens of BookCorpus and Wikipedia; set train.steps for another corpus. Left out: masking that prefers rare
words. Published: 8 V100 for about 90 hours; 77.0 on the development sets of GLUE, the teacher 79.5 (paper, table 1). Not yet run here.
`--config.train.microbatches` makes the batch fit fewer devices.
"""

from jaxenc.configs import recipe
from ml_collections import ConfigDict

from jaxenc.data.sources import DataConfig
from jaxenc.families.distilbert.sizes import DISTILBERT, distilbert
from jaxenc.objectives.distillation import DistillationConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig


def get_config() -> ConfigDict:
    run = Run(
        objective=DistillationConfig(soft_places="all", replacements="all"),
        model=distilbert(*DISTILBERT["base"]),
        data=DataConfig(length=512),
        train=TrainConfig(steps=6_000, batch=4_000),
        optim=OptimConfig(lr=5e-4, warmup=300, beta2=0.98, epsilon=1e-6, weight_decay=0.0, clip=5.0),
    )
    return recipe(run)
