"""What XLNet's streams are compared on with transformers: settings, random rows, its names for our parameters, and what ours computes.
Needs neither of the two libraries."""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from jaxenc import tree
from jaxenc.data.vocabulary import padded
from jaxenc.families.two_stream import Memory, Query
from jaxenc.families.two_stream import Rows as Read
from jaxenc.families.xlnet.model import Xlnet, XlnetConfig
from jaxenc.heads.lm import LmHead
from jaxenc.tree import Tree
from tests import tiny
from tests.parity.cases import GOLDEN

VOCAB, WIDTH, HEADS, INNER, LAYERS = 131, 12, 3, 20, 2


@dataclasses.dataclass(frozen=True)
class Setting:
    """memory, predictions: how many places; 0 for none. both: the second half of the rows runs backward. padded: `left`, `right` or ''."""

    rows: int
    length: int
    memory: int = 0
    predictions: int = 0
    both: bool = False
    clamp: int = 0
    activation: str = "gelu_erf"
    padded: str = ""
    typed: bool = True


SETTINGS = {
    "everything": Setting(4, 9, memory=5, predictions=4, both=True, clamp=6, padded="right"),
    "one row, more memory than text": Setting(1, 5, memory=8, predictions=2, activation="gelu_tanh"),
    "both directions": Setting(2, 11, predictions=11, both=True),
    "one direction": Setting(3, 7, predictions=1, padded="left", activation="gelu_tanh"),
    "no query, no types": Setting(3, 6, memory=1, padded="left", typed=False),
}


# What tests/golden/hf/make.py left of these settings.
FILE, COMMITTED = GOLDEN / "xlnet_streams.npz", ("everything", "one direction")


@dataclasses.dataclass(frozen=True)
class Rows:
    """One batch. real: bool [batch, length]; hides: bool [batch, length, length], what the order hides; labels, at: [batch, predictions];
    memory: [batch, layers, memory, width]; weight: [batch, length, width], what the loss takes of the content stream."""

    tokens: np.ndarray
    types: np.ndarray
    real: np.ndarray
    hides: np.ndarray
    at: np.ndarray
    labels: np.ndarray
    memory: np.ndarray
    direction: np.ndarray
    weight: np.ndarray


def rows(s: Setting, seed: int = 0) -> Rows:
    """Any order at all, not one that permutations give; every place is seen by some and hidden from others."""
    random = np.random.default_rng(seed)
    lengths = np.maximum(s.length - np.arange(s.rows) * 2, 3)[:, None] if s.padded else np.full((s.rows, 1), s.length)
    places = np.arange(s.length)
    real = places >= s.length - lengths if s.padded == "left" else places < lengths
    hides = random.random((s.rows, s.length, s.length)) < 0.4
    # Two real places that all see: a query without any key reads all keys alike in transformers, and nothing here (`where_seen`).
    shown = [0, 1] if s.padded != "left" else [s.length - 1, s.length - 2]
    hides[:, :, shown] = False
    at = np.argsort(random.random((s.rows, s.length)), axis=1)[:, : s.predictions]
    return Rows(
        tokens=random.integers(9, VOCAB, (s.rows, s.length)),
        types=random.integers(0, 3, (s.rows, s.length)) if s.typed else np.zeros((s.rows, s.length), np.int64),
        real=real,
        hides=hides,
        at=at,
        labels=random.integers(0, VOCAB, at.shape),
        memory=random.normal(0, 1, (s.rows, LAYERS, s.memory, WIDTH)).astype(np.float32),
        direction=np.where(np.arange(s.rows) < s.rows / 2, 1, -1) if s.both else np.ones(s.rows, np.int64),
        weight=random.normal(0, 0.1, (s.rows, s.length, WIDTH)).astype(np.float32),
    )


def config(s: Setting) -> XlnetConfig:
    return XlnetConfig(VOCAB, WIDTH, LAYERS, HEADS, INNER, s.clamp, s.activation)


def named(values: Mapping[str, np.ndarray]) -> Tree:
    """Values by their names as the tree of ours; padding rows of the vocabulary are zeros."""

    def leaf(path: str, value: np.ndarray) -> np.ndarray:
        if path in ("embeddings/token/table", "lm/bias"):
            return np.pad(value, [(0, padded(VOCAB) - VOCAB), *[(0, 0)] * (value.ndim - 1)])
        if path.endswith("segment/table"):
            return value.reshape(2, WIDTH)
        if path.endswith(("_bias", "embeddings/mask")):
            return value.reshape(-1)
        if "attention" in path and path.endswith("kernel"):
            # [width, heads, d] each; the output's contracts heads and d.
            return value.reshape(WIDTH, WIDTH).T if "output" in path else value.reshape(WIDTH, WIDTH)
        return value.T if path.endswith("kernel") else value

    paths = {_ours(name): value for name, value in values.items()}
    return tree.from_leaves((path, leaf(path, value)) for path, value in paths.items())


ATTENTION = {
    **{letter: f"{name}/kernel" for letter, name in zip("qkvro", ("query", "key", "value", "relative", "output"), strict=True)},
    **{"r_w_bias": "content_bias", "r_r_bias": "position_bias", "r_s_bias": "segment_bias", "seg_embed": "segment/table"},
}
OUTSIDE = {
    "transformer.word_embedding.weight": "embeddings/token/table",
    "transformer.mask_emb": "embeddings/mask",
    "lm_loss.bias": "lm/bias",
}
NORM = {"weight": "scale", "bias": "bias"}


def _ours(name: str) -> str:
    if not name.startswith("transformer.layer."):
        return OUTSIDE[name]
    _, _, number, part, *rest = name.split(".")
    where = f"encoder/layer_{int(number):02d}/{'attention' if part == 'rel_attn' else 'feed_forward'}"
    if rest[0] == "layer_norm":
        return f"{where}/norm/{NORM[rest[1]]}"
    if part == "rel_attn":
        return f"{where}/{ATTENTION[rest[0]]}"
    return f"{where}/{'up' if rest[0] == 'layer_1' else 'down'}/{'kernel' if rest[1] == 'weight' else 'bias'}"


def ours(s: Setting, given: Rows) -> Read:
    """What `Xlnet` reads; a place sees itself in the content stream, as transformers adds it."""
    before = np.ones((s.rows, s.length, s.memory), bool)
    sees = np.concatenate([before, ~given.hides & given.real[:, None]], axis=2)
    itself = np.eye(s.length, s.memory + s.length, s.memory, dtype=bool)
    memory = Memory(given.memory, np.full(s.rows, s.memory, np.int32)) if s.memory else None
    query = Query(given.at.astype(np.int32), np.take_along_axis(sees, given.at[:, :, None], axis=1)) if s.predictions else None
    direction = given.direction.astype(np.int32) if s.both else None
    return Read(given.tokens.astype(np.int32), given.types.astype(np.int32), sees | itself, direction, memory, query)


def computed(s: Setting, params: Tree, given: Rows) -> tuple[dict[str, np.ndarray], Tree]:
    """As `peer_xlnet.theirs`, of our network."""
    rows = ours(s, given)
    network, head = Xlnet(config(s), tiny.execution()), LmHead(VOCAB, tiny.execution())

    def loss(params: Tree) -> tuple[jax.Array, dict[str, jax.Array]]:
        found = network.apply({"params": params}, rows, None, all_layers=True)
        out = {"content": found.content, "loss": jnp.sum(found.content[-1] * given.weight)}
        last = found.content if rows.query is None else found.query
        out["logits"] = head.apply({"params": params["lm"]}, last[-1], params["embeddings"]["token"]["table"])[..., :VOCAB]
        if rows.query is not None:
            chances = jax.nn.log_softmax(out["logits"])
            out |= {"query": found.query, "loss": out["loss"] - jnp.mean(jnp.take_along_axis(chances, given.labels[..., None], axis=-1))}
        memory = jnp.concatenate([given.memory, found.inputs[:, :, : s.length - 1]], axis=2)
        return out["loss"], out | {"memory": memory[:, :, -s.memory - 2 :]}

    (_, out), gradients = jax.device_get(jax.jit(jax.value_and_grad(loss, has_aux=True))(params))
    return out, gradients
