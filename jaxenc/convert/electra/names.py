"""A network of ELECTRA in the files of transformers and of google-research/electra: one table of names for both."""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from jaxenc.convert.bert.names import PARTS as BERT_PARTS
from jaxenc.convert.bert.names import TOKENS
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.formats import leaves
from jaxenc.formats.key_map import Entry
from jaxenc.formats.leaves import NONE
from jaxenc.formats.tensor import Tensor
from jaxenc.heads import BUILT_IN
from jaxenc.layers.stack import layer_name


class Part(NamedTuple):
    """As `bert.names.Part`; ours: below the network's own path for its projection and layers. A discriminator's layers are
    `electra/...` in google's files and a generator's `generator/...`; the tables that they share are `electra/embeddings`."""

    head: str
    ours: str
    torch: str
    google: str
    kind: str


GENERATOR, DISCRIMINATOR = "generator_predictions", "discriminator_predictions"
PARTS = (
    *(Part("", part.ours, part.bert, part.google, part.kind) for part in BERT_PARTS if not part.head),
    Part("", "project", "embeddings_project", "embeddings_project", "dense"),
    Part("mlm", "mlm/dense", f"{GENERATOR}.dense", f"{GENERATOR}/dense", "dense"),
    Part("mlm", "mlm/norm", f"{GENERATOR}.LayerNorm", f"{GENERATOR}/LayerNorm", "norm"),
    Part("mlm", "mlm/bias", "generator_lm_head.bias", f"{GENERATOR}/output_bias", "bias"),
    Part("rtd", "rtd/dense", f"{DISCRIMINATOR}.dense", f"{DISCRIMINATOR}/dense", "dense"),
    Part("rtd", "rtd/output", f"{DISCRIMINATOR}.dense_prediction", f"{DISCRIMINATOR}/dense_1", "dense"),
    Part("pooler", "pooler/dense", "classifier.dense", NONE, "dense"),
    Part("classifier", "classifier/dense", "classifier.out_proj", NONE, "output"),
    Part("tags", "tags/dense", "classifier", NONE, "output"),
    Part("spans", "spans/dense", "qa_outputs", NONE, "output"),
)
# What transformers may hold twice, since its decoder is tied.
COPIES = {"embeddings/token/table": "generator_lm_head.weight"}


@dataclasses.dataclass(frozen=True)
class Layout:
    """How one file writes the names. base: what stands before the layers' names; tables: before those of the embeddings; google: the
    file is a checkpoint of google-research/electra; gamma: as `bert.names.Layout`'s."""

    base: str
    tables: str
    google: bool = False
    gamma: bool = False


def layout_of(names: Collection[str]) -> Layout:
    """The layout of a file of transformers: the base is `electra.` or, where the network was saved alone, mostly nothing."""
    bases = [name.removesuffix(TOKENS) for name in names if name.endswith(TOKENS)]
    bases += ["electra." for name in names if name.startswith("electra.")]
    base = bases[0] if bases else ""
    return Layout(base, base, gamma=any(name.endswith(".gamma") for name in names))


def google_layout(network: str, names: Collection[str]) -> Layout:
    """The layout of the `generator` or the `discriminator` in a checkpoint of google-research/electra."""
    base = "electra/" if network == "discriminator" else "generator/"
    own = any(name.startswith(f"{base}embeddings/") for name in names)
    return Layout(base, base if own else "electra/", google=True)


def entries(config: ElectraConfig, network: str, heads: Collection[str], layout: Layout) -> tuple[Entry, ...]:
    """The table of the `generator` or the `discriminator` with `heads`, built-in ones, in the order of PARTS.

    Raises ValueError for a head that such a file does not have.
    """
    missing = set(heads) - {part.head for part in PARTS if not (layout.google and part.google == NONE)}
    if missing:
        raise ValueError(f"files of ELECTRA have no head {', '.join(missing)}")
    block = config.block(network)
    absent = [] if config.types else ["embeddings/type/table"]
    absent += [] if config.embedding != block.width else ["project"]
    parts = [part for part in PARTS if part.head in ("", *heads) and part.ours not in absent]
    return tuple(entry for part in parts for entry in _of_part(part, config, network, layout))


def _of_part(part: Part, config: ElectraConfig, network: str, layout: Layout) -> Iterator[Entry]:
    name, tables = part.google if layout.google else part.torch, part.ours.startswith("embeddings/")
    base = "" if part.head else layout.tables if tables else layout.base
    own = not part.head and not (tables and (network == "discriminator" or config.sharing == "embeddings"))
    path = f"{network}/{part.ours}" if own else part.ours
    for n in range(config.depth(network) if "{n}" in name else 1):
        ours, theirs = path.format(layer=layer_name(n)), base + name.format(n=n)
        copies = COPIES if network == "generator" and not layout.google else {}
        yield from leaves.entries(part.kind, ours, theirs, config.vocab_size, layout.google, layout.gamma, copies)


def _names_of(head: str) -> list[str]:
    one, layout = ElectraConfig(generator_layers=1, layers=1), Layout("", "")
    return [entry.theirs for part in PARTS if part.head == head for entry in _of_part(part, one, "discriminator", layout)]


def heads_of(names: Collection[str]) -> tuple[str, ...]:
    """The heads whose tensors are among the `names` of a file of transformers, in the order of `heads.BUILT_IN`."""
    return tuple(head for head in BUILT_IN if any(name in names for name in _names_of(head)))


def classes_of(tensors: Mapping[str, Tensor], head: str) -> int:
    """The number of classes of `head` as its tensors have it, each with a row a class; 2, as transformers takes, where none tells."""
    return next((tensors[name].shape[0] for name in _names_of(head) if name in tensors and tensors[name].shape), 2)


def skipped(layout: Layout) -> tuple[str, ...]:
    """Patterns of transformers' names that hold no parameter: buffers of ids."""
    return (re.escape(layout.base) + r"embeddings\.(position_ids|token_type_ids)",)
