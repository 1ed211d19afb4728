"""Every model that a recipe can name: an entry here, a file beside this one."""

from jaxenc.models.bert import BertConfig

MODELS = {cls.kind: cls for cls in (BertConfig,)}
