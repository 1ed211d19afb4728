"""GPT, the first of that name."""

from jaxenc.families.family import Family
from jaxenc.families.gpt.model import GptConfig
from jaxenc.families.gpt.transformers import TRANSFORMERS

GPT = Family(GptConfig, transformers=TRANSFORMERS)
