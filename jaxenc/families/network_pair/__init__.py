"""A pair of any two encoders."""

from jaxenc.families.family import Family
from jaxenc.families.network_pair.model import NetworkPairConfig

NETWORK_PAIR = Family(NetworkPairConfig)
