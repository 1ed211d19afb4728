"""Rows of a data folder. A new kind of row is a file beside this one and a line in KINDS or STREAMS."""

from collections.abc import Callable

from jaxenc.data.sources import mixture
from jaxenc.data.sources.bucketed import Bucket, check_lengths, open_buckets
from jaxenc.data.sources.packed import Packed
from jaxenc.data.sources.pairs import Pairs, SwappedPairs
from jaxenc.data.sources.segments import check_segments, open_segments
from jaxenc.data.sources.sentences import check_sentences, open_sentences
from jaxenc.data.sources.source import SHAPED_BY, DataConfig, Source
from jaxenc.data.sources.streams import Streams, StreamsPass
from jaxenc.data.sources.text import Text
from jaxenc.data.sources.whole_sentences import WholeSentences
from jaxenc.data.store import Shards, open_split
from jaxenc.errors import UserError

__all__ = [
    "BUCKETED",
    "ORDERED_BY_BATCH",
    "PACKED",
    "SHAPED_BY",
    "STREAMS",
    "DataConfig",
    "Opener",
    "Source",
    "Streams",
    "check",
    "open_bucketed",
    "open_source",
    "open_streams",
]

Opener = Callable[[str, str], Shards]

# data.rows -> (smallest data.length, the source of (shards, config, seed, evaluation))
KINDS = {
    "text": (3, lambda shards, config, *_: Text(shards, config.length)),
    "full_sentences": (3, lambda shards, config, *_: WholeSentences(shards, config.length, crosses=True)),
    "doc_sentences": (3, lambda shards, config, *_: WholeSentences(shards, config.length, crosses=False)),
    "packed": (3, lambda shards, config, *_: Packed(shards, config.length)),
    "pairs": (5, lambda shards, config, *choices: Pairs(shards, config.length, config.short_probability, *choices)),
    "swapped_pairs": (5, lambda shards, config, *choices: SwappedPairs(shards, config.length, config.short_probability, *choices)),
}

PACKED = ("packed",)  # data.rows with several texts in a row, which do not attend to each other

BUCKETED = ("bucketed",)  # data.rows of several lengths: all rows of a batch have one length, which its number decides

UNFRAMED = ("text", "bucketed")  # data.rows that need no ids for the ends of a row

# data.rows -> (the check of (config, batch), the streams of (shards, config, batch, seed, evaluation, limit)): rows that follow each other,
# slot by slot
STREAMS = {"streams": (check_segments, open_segments), "sentences": (check_sentences, open_sentences)}

ORDERED_BY_BATCH = (*STREAMS, *BUCKETED)  # data.rows whose order depends on the number of rows of a batch


def check(config: DataConfig, batch: int) -> None:
    """Raises UserError for rows, a length or a training batch that are not possible, whatever the text: no data is opened."""
    if config.rows in STREAMS and config.mixture:
        raise UserError(f"data.rows={config.rows} follows one text, and data.mixture names several", fix="set data.path to one folder")
    if config.rows in STREAMS:
        STREAMS[config.rows][0](config, batch)
    elif config.rows in BUCKETED:
        check_lengths(config)
    elif config.rows not in KINDS:
        raise UserError(f"data.rows is {config.rows!r}", fix=f"it takes {', '.join([*KINDS, *BUCKETED, *STREAMS])}")
    elif config.length < (smallest := KINDS[config.rows][0]):
        raise UserError(f"data.length is {config.length}", fix=f"rows of {config.rows!r} need {smallest} or more")


def open_source(config: DataConfig, split: str, seed: int, evaluation: bool, opener: Opener = open_split) -> Source:
    """The rows of `split` (train, held_out) as `config` asks.

    seed: of the run; the choices of pairs depend on it. evaluation: the choices do not change from epoch to epoch. opener: opens a split of
    a data folder, or returns one that is already open.
    Raises UserError as `check`, and when no data is named, it cannot be opened, the split has no rows, or the rows need special pieces that
    the tokenizer lacks.
    """
    check(config, 0)
    if not config.mixture:
        return _rows(config, config.path, split, seed, evaluation, opener)
    # An evaluation leaves out folders without held-out documents.
    facts = [opener(name, split).manifest for name in config.mixture]
    mixture.check_tokenizers(config.mixture, facts)
    names = [name for name, one in zip(config.mixture, facts, strict=True) if one.splits[split].tokens or not evaluation]
    parts = [_rows(config, name, split, seed, evaluation, opener) for name in names or config.mixture[:1]]
    if evaluation:
        return mixture.once(parts)
    tokens = [one.splits[split].tokens for one in facts]
    return mixture.mixed(parts, names, mixture.shares(tokens, config.weights, config.exponent), seed)


def _rows(config: DataConfig, folder: str, split: str, seed: int, evaluation: bool, opener: Opener) -> Source:
    """The rows of one folder, as `open_source`."""
    _, source = KINDS[config.rows]
    return source(_opened(config, folder, split, opener), config, seed, evaluation)


def open_bucketed(config: DataConfig, split: str, opener: Opener = open_split) -> tuple[Bucket, ...]:
    """The rows of each length of `split`. opener: as in `open_source`. Raises UserError as `open_source` does."""
    return open_buckets(_opened(config, config.path, split, opener), config)


def open_streams(
    config: DataConfig, split: str, batch: int, seed: int, evaluation: bool, limit: int, opener: Opener = open_split
) -> Streams | StreamsPass:
    """The streams of `split` as `config` asks, one a slot of `batch`. limit: rows of an evaluation, 0 for all. opener: as in `open_source`.

    Raises UserError as `open_source` does, and for a batch that the text has not enough streams for.
    """
    return STREAMS[config.rows][1](_opened(config, config.path, split, opener), config, batch, seed, evaluation, limit)


def _opened(config: DataConfig, folder: str, split: str, opener: Opener) -> Shards:
    if not folder:
        raise UserError("data.path is not set", fix="name a folder made by `jaxenc data`")
    shards = opener(folder, split)
    if not len(shards.tokens):
        raise UserError(f"the split {split} has no documents, so no rows", folder, "add text or raise --held-out")
    if config.rows not in UNFRAMED and not shards.manifest.tokenizer.frames:
        what = f"data.rows={config.rows} puts special pieces around texts, which the tokenizer of {folder} does not have"
        raise UserError(what, fix=f"use data.rows={' or '.join(UNFRAMED)}, or build the data with a tokenizer that has them")
    return shards
