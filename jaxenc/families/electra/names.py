"""The names of ELECTRA's parameters in the files of transformers and of google-research/electra, in one table for both networks."""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from jaxenc.families import fine_tuned
from jaxenc.families.bert.names import PARTS as BERT_PARTS
from jaxenc.families.bert.names import base_of
from jaxenc.families.electra.model import ElectraConfig
from jaxenc.formats import leaves
from jaxenc.formats.key_map import Entry
from jaxenc.formats.leaves import NONE
from jaxenc.formats.tensor import Tensor
from jaxenc.heads.first_token import FIRST_TOKEN
from jaxenc.layers.stack import layer_name


class ElectraPart(NamedTuple):
    """As `bert.names.BertPart`; ours: below the network's own path for its projection and layers. A discriminator's layers are
    `electra/...` in google's files and a generator's `generator/...`; the tables that they share are `electra/embeddings`."""

    head: str
    ours: str
    torch: str
    google: str
    kind: str


GENERATOR, DISCRIMINATOR = "generator_predictions", "discriminator_predictions"
# The head of a fine-tuned checkpoint of google-research/electra (finetune/classification/classification_tasks.py, finetune/tagging).
TASK = "task_specific/{task}/dense"
PARTS = (
    *(ElectraPart("", part.ours, part.bert, part.google, part.kind) for part in BERT_PARTS if not part.head),
    ElectraPart("", "project", "embeddings_project", "embeddings_project", "dense"),
    ElectraPart("mlm", "mlm/dense", f"{GENERATOR}.dense", f"{GENERATOR}/dense", "dense"),
    ElectraPart("mlm", "mlm/norm", f"{GENERATOR}.LayerNorm", f"{GENERATOR}/LayerNorm", "norm"),
    ElectraPart("mlm", "mlm/bias", "generator_lm_head.bias", f"{GENERATOR}/output_bias", "bias"),
    ElectraPart("rtd", "rtd/dense", f"{DISCRIMINATOR}.dense", f"{DISCRIMINATOR}/dense", "dense"),
    ElectraPart("rtd", "rtd/output", f"{DISCRIMINATOR}.dense_prediction", f"{DISCRIMINATOR}/dense_1", "dense"),
    ElectraPart("pooler", "pooler/dense", "classifier.dense", NONE, "dense"),
    ElectraPart("classifier", "classifier/dense", "classifier.out_proj", TASK, "dense"),
    ElectraPart("regressor", "regressor/dense", "classifier.out_proj", TASK, "dense"),
    ElectraPart("multilabel", "multilabel/dense", "classifier.out_proj", NONE, "dense"),
    ElectraPart("choice", "choice/dense", "classifier", NONE, "dense"),
    ElectraPart("tags", "tags/dense", "classifier", TASK, "dense"),
    ElectraPart("spans", "spans/dense", "qa_outputs", NONE, "output"),
)
# The dense layer before the scores of choices, which has another name than that of the classifier.
CHOICE_POOLER = "sequence_summary.summary"
# Tied parameters that files of transformers may hold a second time, under the names of the decoder.
COPIES = {"embeddings/token/table": "generator_lm_head.weight"}


@dataclasses.dataclass(frozen=True)
class ElectraFile:
    """The naming scheme of one file. base: prefix of the layers' names; tables: prefix of the embeddings' names; google: whether it is a
    checkpoint of google-research/electra; gamma: as in `bert.names.BertFile`; task: the name of the task of a checkpoint that
    google-research/electra fine-tuned, such as mnli, '' for any other file."""

    base: str
    tables: str
    google: bool = False
    gamma: bool = False
    task: str = ""


def file_of(names: Collection[str]) -> ElectraFile:
    """The naming scheme of a file of transformers. The base is `electra.` or, for an encoder without heads, usually empty."""
    base = base_of("electra.", names)
    return ElectraFile(base, base, gamma=any(name.endswith(".gamma") for name in names))


def google_file(network: str, names: Collection[str]) -> ElectraFile:
    """The naming scheme of `network`, `generator` or `discriminator`, in a checkpoint of google-research/electra."""
    base = "electra/" if network == "discriminator" else "generator/"
    own = any(name.startswith(f"{base}embeddings/") for name in names)
    return ElectraFile(base, base if own else "electra/", google=True)


def entries(config: ElectraConfig, network: str, heads: Collection[str], file: ElectraFile) -> tuple[Entry, ...]:
    """The key map of `network`, `generator` or `discriminator`, with `heads` (built-in ones), in the order of PARTS.

    Raises ValueError for a head that such a file does not have.
    """
    absent_here = (NONE,) if file.task else (NONE, TASK)
    missing = set(heads) - {FIRST_TOKEN.name, *(part.head for part in PARTS if not (file.google and part.google in absent_here))}
    if missing:
        raise ValueError(f"files of ELECTRA have no head {', '.join(missing)}")
    block = config.block(network)
    absent = [] if config.types else ["embeddings/type/table"]
    absent += [] if config.embedding != block.width else ["project"]
    parts = [part for part in PARTS if part.head in ("", *heads) and part.ours not in absent]
    named = lambda part: part._replace(torch=CHOICE_POOLER) if part.head == "pooler" and "choice" in heads else part
    return tuple(entry for part in parts for entry in _of_part(named(part), config, network, file))


def _of_part(part: ElectraPart, config: ElectraConfig, network: str, file: ElectraFile) -> Iterator[Entry]:
    name, tables = part.google if file.google else part.torch, part.ours.startswith("embeddings/")
    base = "" if part.head else file.tables if tables else file.base
    own = not part.head and not (tables and (network == "discriminator" or config.sharing == "embeddings"))
    path = f"{network}/{part.ours}" if own else part.ours
    for n in range(config.depth(network) if "{n}" in name else 1):
        ours, theirs = path.format(layer=layer_name(n)), base + name.format(n=n, task=file.task)
        copies = COPIES if network == "generator" and not file.google else {}
        yield from leaves.entries(part.kind, ours, theirs, config.vocab_size, file.google, file.gamma, copies)


def _names_of(head: str) -> list[str]:
    one, file = ElectraConfig(generator_layers=1, layers=1), ElectraFile("", "")
    return [entry.theirs for part in PARTS if part.head == head for entry in _of_part(part, one, "discriminator", file)]


def heads_of(names: Collection[str], architecture: str) -> tuple[str, ...]:
    """The heads whose tensors are among the `names` of a file of transformers, as `fine_tuned.heads_of`."""
    tensors = {part.head: _names_of(part.head) for part in PARTS if part.head}
    tensors["pooler"] += [f"{CHOICE_POOLER}.weight", f"{CHOICE_POOLER}.bias"]
    return fine_tuned.heads_of(tensors, names, architecture)


def classes_of(tensors: Mapping[str, Tensor], head: str) -> int:
    """The number of classes of `head`, as `fine_tuned.classes_of`."""
    return fine_tuned.classes_of(tensors, _names_of(head))


def skipped(file: ElectraFile) -> tuple[str, ...]:
    """Patterns of tensor names in transformers that are not parameters: buffers of ids."""
    return (re.escape(file.base) + r"embeddings\.(position_ids|token_type_ids)",)
