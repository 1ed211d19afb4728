"""The registry of objectives, one file each in this folder."""

from jaxenc.objectives.bilm import BilmConfig
from jaxenc.objectives.causal import CausalConfig
from jaxenc.objectives.distillation import DistillationConfig
from jaxenc.objectives.features import FeaturesConfig
from jaxenc.objectives.heads import HeadsConfig
from jaxenc.objectives.mlm import MlmConfig
from jaxenc.objectives.pair import PairConfig, SentenceOrderConfig
from jaxenc.objectives.plm import PlmConfig
from jaxenc.objectives.probe import ProbeConfig
from jaxenc.objectives.replaced_mlm import ReplacedMlmConfig
from jaxenc.objectives.rtd import RtdConfig

DEFAULT = MlmConfig()
ALL = (
    MlmConfig,
    PairConfig,
    SentenceOrderConfig,
    RtdConfig,
    ReplacedMlmConfig,
    PlmConfig,
    BilmConfig,
    CausalConfig,
    DistillationConfig,
    FeaturesConfig,
    HeadsConfig,
    ProbeConfig,
)
OBJECTIVES = {cls.kind: cls for cls in ALL}
