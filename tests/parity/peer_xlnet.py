"""transformers' side of XLNet's comparison: random tiny models, what they compute of both streams, their loss's gradients."""

import numpy as np
import torch
import transformers

from jaxenc.tree import Tree
from tests.parity.xlnet import HEADS, INNER, LAYERS, VOCAB, WIDTH, Rows, Setting, named

torch.set_num_threads(1)


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
