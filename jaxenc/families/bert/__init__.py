"""BERT and RoBERTa."""

from jaxenc.families.bert import fairseq
from jaxenc.families.bert.google import GOOGLE
from jaxenc.families.bert.model import BertConfig
from jaxenc.families.bert.transformers import TRANSFORMERS
from jaxenc.families.family import Family

BERT = Family(BertConfig, transformers=TRANSFORMERS, google=GOOGLE, fairseq=fairseq.read)
