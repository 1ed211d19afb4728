"""ALBERT."""

from jaxenc.families.albert.google import GOOGLE
from jaxenc.families.albert.model import AlbertConfig
from jaxenc.families.albert.transformers import TRANSFORMERS
from jaxenc.families.family import Family

ALBERT = Family(AlbertConfig, transformers=TRANSFORMERS, google=GOOGLE)
