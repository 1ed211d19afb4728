"""XLNet."""

from jaxenc.families.family import Family
from jaxenc.families.xlnet.google import GOOGLE
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.families.xlnet.transformers import TRANSFORMERS

XLNET = Family(XlnetConfig, transformers=TRANSFORMERS, google=GOOGLE)
