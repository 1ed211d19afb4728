"""Every family of models that converts, by transformers' model_type: an entry here, a folder beside this file.

The first is the oldest, which a folder means that names no model.
"""

from jaxenc.convert.bert import BERT
from jaxenc.convert.electra import ELECTRA
from jaxenc.convert.xlnet import XLNET

FAMILIES = {"bert": BERT, "roberta": BERT, "xlm-roberta": BERT, "camembert": BERT, "electra": ELECTRA, "xlnet": XLNET}
