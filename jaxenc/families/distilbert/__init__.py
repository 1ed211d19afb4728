"""DistilBERT."""

from jaxenc.families.distilbert.model import DistilbertConfig
from jaxenc.families.distilbert.transformers import TRANSFORMERS
from jaxenc.families.family import Family

DISTILBERT = Family(DistilbertConfig, transformers=TRANSFORMERS)
