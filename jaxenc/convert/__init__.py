"""Every family of models that converts, by transformers' model_type: an entry here, a folder beside this file."""

from jaxenc.convert.bert import BERT

FAMILIES = {"bert": BERT, "roberta": BERT, "xlm-roberta": BERT, "camembert": BERT}
