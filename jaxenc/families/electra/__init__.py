"""ELECTRA."""

from jaxenc.families.electra.google import GOOGLE
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.electra.transformers import TRANSFORMERS
from jaxenc.families.family import Family

ELECTRA = Family(ElectraConfig, transformers=TRANSFORMERS, google=GOOGLE)
