"""Every model that a recipe can name: an entry here, a file beside this one."""

from jaxenc.models.bert import BertConfig
from jaxenc.models.electra import ElectraConfig
from jaxenc.models.elmo import ElmoConfig
from jaxenc.models.xlnet import XlnetConfig

MODELS = {cls.kind: cls for cls in (BertConfig, ElectraConfig, XlnetConfig, ElmoConfig)}
