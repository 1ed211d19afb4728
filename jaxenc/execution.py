"""How a model is computed in a run: nothing here changes a parameter."""

import dataclasses

from jaxenc.precision import Policy


@dataclasses.dataclass(frozen=True)
class Execution:
    """One choice for every module of a run.

    attention: `xla`, `cudnn` or `pallas`, the backend that `layers/attend.py` calls.
    remat: `none`, `block` or `attention`, what the backward pass computes again instead of keeping.
    scan: one compiled block for all layers (short compile) instead of unrolled layers (faster on a GPU, measured).
    packed: whether a row holds several texts, which do not attend to each other; the batch's `segments` say which token is of which text.
    platform: of the devices that it runs on, as `sharding.mesh.platform` names it; not always that of the machine that compiles it.
    """

    policy: Policy
    attention: str
    remat: str
    scan: bool
    packed: bool = False
    platform: str = "cpu"
