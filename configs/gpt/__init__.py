"""GPT (Radford et al. 2018): what the recipes of this folder share."""

from jaxenc.data.sources import DataConfig
from jaxenc.families.gpt.model import GptConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.optim.optimizer import OptimConfig
from jaxenc.training.run import Run
from jaxenc.training.settings import TrainConfig


def published(model: GptConfig) -> Run:
    """The paper's pretraining (section 4.1): batches of 64 rows of 512 contiguous tokens, Adam with the rate 2.5e-4, 2,000 steps of warm-up
    and a cosine down to 0.

    The paper says 100 epochs of BooksCorpus and no number of steps. The 3,000,000 here are ours: 100 times the 985 million words of the
    corpus (Zhu et al. 2015) at 32,768 tokens a step, a token counted as a word. Betas, epsilon, clipping, decay of matrices alone and a
    cosine that starts at step 0, with the warm-up spliced over it, are those of the published fine-tuning code
    (openai/finetune-transformer-lm:train.py, opt.py); the code of the pretraining was not published.
    """
    return Run(
        objective=CausalConfig(),
        model=model,
        data=DataConfig(rows="full_sentences", length=512),
        train=TrainConfig(batch=64, steps=3_000_000),
        optim=OptimConfig(lr=2.5e-4, warmup=2000, schedule="cosine", origin="step_zero", epsilon=1e-8),
    )
