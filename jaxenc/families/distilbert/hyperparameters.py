"""The fine-tuning of DistilBERT, from an example of transformers: Sanh et al. 2019 give no numbers."""

from jaxenc.families.bert.hyperparameters import BERT
from jaxenc.families.hyperparameters import Hyperparameters

DISTILBERT = Hyperparameters(
    source="huggingface/transformers examples/pytorch/text-classification/README.md, with the warm-up of BERT",
    every={**BERT.every, "optim.origin": "warmup_end", "optim.epsilon": 1e-8, "optim.bias_correction": True, "optim.weight_decay": 0.0},
    tasks={name: BERT.tasks[name] for name in ("squad", "squad2")},
)
