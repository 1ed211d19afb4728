"""Every family that a recipe can name and a command can convert: an entry here, a folder beside this file.

The first is the oldest one of transformers, which a folder without any name of a model means.
"""

from jaxenc.families.bert import BERT
from jaxenc.families.electra import ELECTRA
from jaxenc.families.elmo import ELMO
from jaxenc.families.family import registry
from jaxenc.families.xlnet import XLNET

BUILT_IN = registry((BERT, ELECTRA, XLNET, ELMO))
MODELS = {kind: family.config for kind, family in BUILT_IN.items()}
DEFAULT = BERT.config()
