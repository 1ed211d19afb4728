"""The 24 small BERTs of Turc et al. 2019, by `LAYERSxWIDTH`: {2, 4, 6, 8, 10, 12} layers, {128, 256, 512, 768} wide.

    jaxenc pretrain --config bert/sizes:4x512 --config.data.path=DATA --workdir RUN

Tiny is 2x128, mini 4x256, small 4x512, medium 8x512; GLUE test averages 64.2, 65.8, 71.2, 73.5 (google-research/bert README). The
published models were pretrained with the masked-LM and next-sentence losses of BERT-base. Not yet run here to the end.
"""

from jaxenc.configs import recipe
from jaxenc.configs.bert import published
from ml_collections import ConfigDict

from jaxenc.errors import UserError
from jaxenc.families.bert.sizes import BERT_SMALL, bert


def get_config(argument: str = "") -> ConfigDict:
    sizes = {f"{layers}x{width}": (layers, width) for layers, width in BERT_SMALL}
    if argument not in sizes:
        known = " ".join(sizes)
        raise UserError(f"--config bert/sizes takes a size after the colon, such as bert/sizes:4x512; {argument!r} is none of {known}")
    return recipe(published(bert(*sizes[argument])))
