"""Both sides of XLNet's comparison: random tiny models and rows, what transformers computes of them, its names for our parameters."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import torch
import transformers

from jaxenc import tree
from jaxenc.layers.embed import padded
from jaxenc.models.xlnet import Memory, Query, XlnetConfig
from jaxenc.tree import Tree

torch.set_num_threads(1)
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
    # Two real places that all see: a query without any key is a case of its own.
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


def build(s: Setting, seed: int = 0) -> transformers.XLNetLMHeadModel:
    """A random model in float64 from float32 weights, evaluation mode, wide enough for any mistake to show."""
    model = transformers.XLNetLMHeadModel(
        transformers.XLNetConfig(
            vocab_size=VOCAB,
            d_model=WIDTH,
            n_layer=LAYERS,
            n_head=HEADS,
            d_inner=INNER,
            ff_activation={"gelu_erf": "gelu", "gelu_tanh": "gelu_new"}[s.activation],
            clamp_len=s.clamp or -1,
            bi_data=s.both,
            mem_len=s.memory + 2,
            reuse_len=s.length - 1,
        )
    ).eval()
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            drawn = random.normal(0, 0.3, tuple(value.shape)).astype(np.float32)
            value.copy_(torch.tensor(drawn + 1 if "layer_norm.weight" in name else drawn))
    # It makes sinusoids in float32, whatever its weights are.
    single = model.transformer.relative_positional_encoding
    model.transformer.relative_positional_encoding = lambda *args, **kwargs: single(*args, **kwargs).double()
    return model.double()


def theirs(s: Setting, model: transformers.XLNetLMHeadModel, given: Rows) -> tuple[dict[str, np.ndarray], Tree]:
    """({`content`, `query` [layers + 1, batch, ...], `logits`, `memory` [batch, layers, new memory, width], `loss`}, its gradients by our
    paths). The loss is the mean cross-entropy of the predictions plus the weighted sum of the content stream's last layer."""
    memory = [torch.tensor(given.memory[:, layer].swapaxes(0, 1)).double() for layer in range(LAYERS)] if s.memory else None
    found = model(
        input_ids=torch.tensor(given.tokens),
        attention_mask=torch.tensor(given.real.astype(np.float64)) if s.padded else None,
        mems=memory,
        perm_mask=torch.tensor(given.hides.astype(np.float64)),
        target_mapping=torch.tensor(np.eye(s.length)[given.at]) if s.predictions else None,
        token_type_ids=torch.tensor(given.types) if s.typed else None,
        labels=torch.tensor(given.labels) if s.predictions else None,
        use_mems=True,
        output_hidden_states=True,
    )
    streams = 2 if s.predictions else 1
    out = {"content": torch.stack(found.hidden_states[::streams]), "logits": found.logits}
    out |= {"query": torch.stack(found.hidden_states[1::2])} if s.predictions else {}
    out["memory"] = torch.stack([states.transpose(0, 1) for states in found.mems], dim=1)
    out["loss"] = torch.sum(out["content"][-1] * torch.tensor(given.weight)) + (found.loss if s.predictions else 0)
    out["loss"].backward()
    gradients = {name: np.zeros(p.shape) if p.grad is None else p.grad.numpy() for name, p in model.named_parameters()}
    return {name: value.detach().numpy() for name, value in out.items()}, named(gradients)


def weights(model: transformers.XLNetLMHeadModel) -> Tree:
    """Their parameters by our paths, float32."""
    return named({name: value.detach().numpy().astype(np.float32) for name, value in model.named_parameters()})


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
NORM = {"weight": "scale", "bias": "bias"}


def _ours(name: str) -> str:
    if not name.startswith("transformer.layer."):
        return {"transformer.word_embedding.weight": "embeddings/token/table", "transformer.mask_emb": "embeddings/mask"}.get(name, "lm/bias")
    _, _, number, part, *rest = name.split(".")
    where = f"encoder/layer_{int(number):02d}/{'attention' if part == 'rel_attn' else 'feed_forward'}"
    if rest[0] == "layer_norm":
        return f"{where}/norm/{NORM[rest[1]]}"
    if part == "rel_attn":
        return f"{where}/{ATTENTION[rest[0]]}"
    return f"{where}/{'up' if rest[0] == 'layer_1' else 'down'}/{'kernel' if rest[1] == 'weight' else 'bias'}"


def ours(s: Setting, given: Rows) -> tuple:
    """Arguments of `Xlnet` from tokens to query; a place sees itself in the content stream, as transformers adds it."""
    before = np.ones((s.rows, s.length, s.memory), bool)
    sees = np.concatenate([before, ~given.hides & given.real[:, None]], axis=2)
    itself = np.eye(s.length, s.memory + s.length, s.memory, dtype=bool)
    memory = Memory(given.memory, np.full(s.rows, s.memory, np.int32)) if s.memory else None
    query = Query(given.at.astype(np.int32), np.take_along_axis(sees, given.at[:, :, None], axis=1)) if s.predictions else None
    direction = given.direction.astype(np.int32) if s.both else None
    return given.tokens.astype(np.int32), given.types.astype(np.int32), direction, memory, sees | itself, query
