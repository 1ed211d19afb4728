"""Every model that a recipe can name: an entry here, a file beside this one."""

from jaxenc.families.bert.model import BertConfig
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.families.elmo.model import ElmoConfig
from jaxenc.families.xlnet.model import XlnetConfig

DEFAULT = BertConfig()
MODELS = {cls.kind: cls for cls in (BertConfig, ElectraConfig, XlnetConfig, ElmoConfig)}
