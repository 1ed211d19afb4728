"""What counting alone predicts: cross-entropies of the held-out tokens that a trained encoder has to beat."""

import dataclasses

import numpy as np

from jaxenc.data.store import Shards, open_split
from jaxenc.errors import UserError

TRAIN_TOKENS = 20_000_000
FIT_TOKENS = 200_000
HELD_OUT_TOKENS = 1_000_000
EM_STEPS = 30
ADD = 0.1
BLOCK = 500  # tokens in a row that weights are fitted to


@dataclasses.dataclass(frozen=True)
class Table:
    """How often each key occurs: keys int64, sorted; counts int64."""

    keys: np.ndarray
    counts: np.ndarray

    def at(self, keys: np.ndarray) -> np.ndarray:
        """Counts of `keys`, 0 where unseen."""
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.counts[place], 0)


def count_baselines(path: str) -> dict[str, float]:
    """Cross-entropy in nats a token of the held-out split, predicted from the training split of a data folder.

    unigram: counts + ADD. left: a mixture of the unigram and of the frequencies after the token on the left. left_right: a mixture of
    those two and of the frequencies in front of the token on the right. The weights of a mixture are numbers fitted by EM on training
    tokens that are not counted: a tenth of those used, FIT_TOKENS at most, in blocks spread evenly, since a text may be sorted by source.
    From the front of each split TRAIN_TOKENS and HELD_OUT_TOKENS are used at most, which bounds the memory (0.8 GB measured); neighbours
    may belong to another document or block.
    Raises UserError when a split is too short.
    """
    train, held_out = open_split(path, "train"), open_split(path, "held_out")
    size = train.manifest.tokenizer.size
    tokens, test = _front(train, TRAIN_TOKENS), _front(held_out, HELD_OUT_TOKENS)
    fitted = min(FIT_TOKENS, len(tokens) // 10)
    if fitted < 3 or len(test) < 3:
        raise UserError("count baselines need 30 training and 3 held-out tokens", path, "build with more text or a higher --held-out")
    every = len(tokens) // fitted
    fitting = np.arange(len(tokens)) // min(BLOCK, fitted) % every == every - 1
    counted, fit = tokens[~fitting], tokens[fitting]
    unigram = (np.bincount(counted, minlength=size) + ADD) / (len(counted) + ADD * size)
    tables = [_count(counted[:-1], counted[1:], size), _count(counted[1:], counted[:-1], size)]
    totals = np.bincount(counted, minlength=size)

    def experts(stream: np.ndarray) -> np.ndarray:
        """[n - 2, 3]: the probability of each inner token by the unigram, by its left and by its right neighbour."""
        middle = stream[1:-1]
        columns = [unigram[middle]]
        for table, around in zip(tables, (stream[:-2], stream[2:]), strict=True):
            columns.append(table.at(around * size + middle) / np.maximum(totals[around], 1))
        return np.stack(columns, 1)

    known, asked = experts(fit), experts(test)
    out = {"unigram": float(-np.log(unigram[test]).mean())}
    for name, columns in (("left", 2), ("left_right", 3)):
        out[name] = float(-np.log(asked[:, :columns] @ _weights(known[:, :columns])).mean())
    return out


def sentence_baselines(path: str) -> dict[str, float]:
    """Cross-entropy in nats a target of the held-out split, for rows of sentences (data/sources/sentences.py): what stands beside a token
    are words that a model predicts, all others as the unknown one, and the markers.

    unigram: of the words and the one marker that a direction predicts; the number is the same for both. left: of a word, or </S>, from
    the token on its left, for the forward direction. right: of a word, or <S>, from the token on its right, for the backward one.
    Weights and limits are those of `count_baselines`, in whole sentences. Raises UserError when a split is too short.
    """
    train, held_out = open_split(path, "train"), open_split(path, "held_out")
    size = train.manifest.tokenizer.size
    pairs, test = _pairs(train, TRAIN_TOKENS), _pairs(held_out, HELD_OUT_TOKENS)
    sentence = np.cumsum(pairs[0] == train.manifest.tokenizer.cls) - 1
    every = min(max(10, -(-pairs.shape[1] // FIT_TOKENS)), int(sentence[-1]) + 1)
    if every < 2 or not test.shape[1]:
        raise UserError("count baselines need more than one sentence", path, "build with more text or a higher --held-out")
    fitting = sentence % every == every - 1
    counted, fit = pairs[:, ~fitting], pairs[:, fitting]
    out: dict[str, float] = {}
    for name, direction in (("left", 1), ("right", -1)):
        (beside, targets), known, asked = (pairs[::direction] for pairs in (counted, fit, test))
        unigram = (np.bincount(targets, minlength=size) + ADD) / (len(targets) + ADD * size)
        table, totals = _count(beside, targets, size), np.maximum(np.bincount(beside, minlength=size), 1)
        columns = [
            np.stack([unigram[target], table.at(context * size + target) / totals[context]], 1) for context, target in (known, asked)
        ]
        out["unigram"] = float(-np.log(columns[1][:, 0]).mean())
        out[name] = float(-np.log(columns[1] @ _weights(columns[0])).mean())
    return out


def _pairs(shards: Shards, limit: int) -> np.ndarray:
    """int64 [2, places]: what stands on the left and on the right of the places of the first sentences, as a model predicts it."""
    vocabulary = shards.manifest.tokenizer
    within = max(int(shards.sentences.search(np.array([limit]), "right")[0]), 2)
    borders = shards.sentences.take(np.arange(min(within, len(shards.sentences))))
    tokens = shards.tokens.take(np.arange(borders[-1]))
    tokens = np.where(tokens < vocabulary.size, tokens, vocabulary.unk)
    return np.stack([np.insert(tokens, borders[:-1], vocabulary.cls), np.insert(tokens, borders[1:], vocabulary.sep)])


def _front(shards: Shards, limit: int) -> np.ndarray:
    return shards.tokens.take(np.arange(min(limit, len(shards.tokens))))


def _count(around: np.ndarray, middle: np.ndarray, size: int) -> Table:
    return Table(*np.unique(around * size + middle, return_counts=True))


def _weights(probabilities: np.ndarray) -> np.ndarray:
    """Mixture weights of the columns (experts) that maximise the likelihood of the rows (tokens): EM from equal weights."""
    weights = np.full(probabilities.shape[1], 1 / probabilities.shape[1])
    for _ in range(EM_STEPS):
        shares = weights * probabilities
        weights = (shares / shares.sum(1, keepdims=True)).mean(0)
    return weights
