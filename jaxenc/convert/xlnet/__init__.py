"""XLNet: folders of transformers in and out, checkpoints of zihangdai/xlnet in.

Where a text that is classified is padded: zihangdai/xlnet and transformers read the vector of the last place of a row and so pad on the
left; here it is that of the last token that is no padding (`heads.summary.Summary`), so that rows may be padded on either side, and
`encode` pads all of them at their end. In transformers an exported classifier is right for rows padded on the left alone, which is what
the tokenizer beside it does. Rows with answers (SQuAD) have their padding at the end everywhere.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from jaxenc.convert.config import labels_of
from jaxenc.convert.family import Export, Family, Google, Import, check_layers
from jaxenc.convert.xlnet import config as configs
from jaxenc.convert.xlnet import names
from jaxenc.convert.xlnet.names import Layout
from jaxenc.errors import UserError
from jaxenc.families.xlnet.model import XlnetConfig
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import BUILT_IN
from jaxenc.inference.load import Model


def read(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model of a folder of transformers; its heads are those whose tensors are there.

    `ff_activation: gelu` is the erf form, which transformers computes, whatever the weights were trained with.
    """
    layout = names.layout_of(tensors)
    heads = _heads(tensors, layout, where)
    if "classifier" in heads:
        configs.only_last(config, where)
    return _import(configs.model_of(config, False, where), heads, config, layout, tensors, where)


def read_google(config: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path) -> Import:
    """The model of a checkpoint of zihangdai/xlnet, pretrained or as run_classifier.py leaves it.

    `ff_activation: gelu` is the tanh form here (modeling.py), and LayerNorm's epsilon 1e-12. Classes have no names: LABEL_0, LABEL_1 ...
    """
    layout = names.google_layout(tensors)
    return _import(configs.model_of(config, True, where), _heads(tensors, layout, where), {}, layout, tensors, where)


def write(ours: Model) -> Export:
    """The model as transformers has it; an encoder without heads as XLNetModel saves itself, names bare."""
    heads = [name for name in BUILT_IN if name in ours.params]
    configs.refuse(heads, "this model")
    config, outputs = configs.config_json(ours.config, heads, ours.tokenizer.vocabulary if ours.tokenizer else None)
    layout = Layout("transformer." if heads else "")
    return Export(config, names.entries(ours.config.model, heads, layout), ours.params, outputs, padding="left")


def _heads(tensors: Mapping[str, Tensor], layout: Layout, where: Path) -> tuple[str, ...]:
    if beam := names.beam_of(tensors):
        told = f"{beam} is of the head that searches answers with a beam"
        raise UserError(f"{where}: {told}: of XLNet's heads for answers only XLNetForQuestionAnsweringSimple can be converted")
    return names.heads_of(tensors, layout)


def _import(
    model: XlnetConfig, heads: Collection[str], config: Mapping[str, Any], layout: Layout, tensors: Mapping[str, Tensor], where: Path
) -> Import:
    configs.refuse(heads, where)
    check_layers(model.layers, tensors, where)
    labelled = [head for head in heads if head in ("classifier", "tags")]
    labels = labels_of(config, names.classes_of(tensors, labelled[0], layout), where) if labelled else ()
    run = configs.run_of(model, heads, labels)
    return Import(run, names.entries(model, heads, layout), stacked=names.stacked(layout), note=configs.note(run))


XLNET = Family(read, write, Google("model/transformer/", "xlnet_config.json", read_google))
