"""ELMo."""

from jaxenc.families.elmo.allennlp import ALLENNLP
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.family import Family

ELMO = Family(ElmoConfig, allennlp=ALLENNLP)
