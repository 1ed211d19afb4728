"""transformers' side of a comparison: random tiny models, what they compute and what their loss's gradients are."""

import copy
from collections.abc import Mapping

import numpy as np
import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel

from jaxenc.data.batch import Batch
from tests.parity.cases import CASES, LABELS, VOCAB
from tests.parity.family import WIDTH, Case

torch.set_num_threads(1)
NORMS = ("LayerNorm.weight", "layer_norm.weight", "ln_1.weight", "ln_2.weight")


def build(case: Case, activation: str, seed: int, width: int = WIDTH) -> PreTrainedModel:
    """A random model in float32, evaluation mode. Weights are wide enough, and biases and norms far enough from 0 and 1, for any mistake
    to show. Embeddings are small, so that a wrong epsilon shows too; and they are, as queries and keys, so that the rounding of the
    gradients that are exactly zero (of a key's bias, of a span's) stays small against the largest.

    torch's tables leave the gradient of their padding row out. A span's softmax runs over padded places too, so that row has one: here
    it is the true gradient, as google-research/bert computes it.
    """
    model = getattr(transformers, case.architecture)(_config(case, activation, width)).eval()
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            queries = any(part in name for part in ("query", "key", "c_attn", "q_lin", "k_lin"))
            scale = 0.01 if name.endswith(("embeddings.weight", "embedding.weight")) else 0.1 if queries else 0.3
            drawn = random.normal(0, scale, tuple(value.shape))
            value.copy_(torch.tensor(drawn + 1.0 if name.endswith(NORMS) else drawn))
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None
    case.family.adapt(model)
    return model


def _config(case: Case, activation: str, width: int) -> PreTrainedConfig:
    family = case.family
    arguments = {**family.sizes(width), "vocab_size": VOCAB, family.activation: activation, "pad_token_id": family.pad}
    if family.tuned:
        arguments["num_labels"] = 1 if "regressor" in case.logits else 2 if {"spans", "sentence_order"} & set(case.logits) else LABELS
    if "multilabel" in case.logits:
        arguments["problem_type"] = "multi_label_classification"
    return getattr(transformers, f"{family.name}Config")(**arguments)


def weights(model: PreTrainedModel) -> dict[str, np.ndarray]:
    """{name: float32}; a tied parameter comes once."""
    return {name: value.detach().numpy().astype(np.float32) for name, value in model.named_parameters()}


def outputs(model: PreTrainedModel, case: Case, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """`hidden` [layers + 1, batch, length, width], our names of the logits, and `loss` where there are labels; in the model's dtype."""
    # The loss of a class whose name says none, which transformers takes with a warning otherwise.
    model.loss_type = model.loss_type or "ForCausalLM"
    result = model(**{name: torch.tensor(value) for name, value in inputs.items()}, output_hidden_states=True)
    out = {"hidden": torch.stack(result.hidden_states)}
    for name, attributes in case.logits.items():
        parts = [result[attribute] for attribute in attributes.split()]
        out[name] = parts[0] if len(parts) == 1 else torch.stack(parts, dim=-1)
    if case.labels:
        out["loss"] = result.loss
    return {name: value.detach().numpy() for name, value in out.items()}


def gradients(model: PreTrainedModel, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """{name: gradient of the loss}, zeros for a parameter that the loss does not reach; in float64, for ours to be the only rounding."""
    model = copy.deepcopy(model).double()
    model(**{name: torch.tensor(value) for name, value in inputs.items()}).loss.backward()
    return {name: (torch.zeros_like(p) if p.grad is None else p.grad).numpy() for name, p in model.named_parameters()}


def pair(sharing: str, usual: int) -> dict[str, PreTrainedModel]:
    """A generator of half the width that often says the id `usual`, and a discriminator; with `embeddings` they have one module of tables,
    as the paper shares them."""
    generator = build(CASES["ElectraForMaskedLM"], "gelu", 1, WIDTH // 2)
    generator.generator_lm_head.bias.data[usual] += 4
    discriminator = build(CASES["ElectraForPreTraining"], "gelu", 2)
    if sharing == "embeddings":
        generator.electra.embeddings = discriminator.electra.embeddings
        generator.generator_lm_head.weight = generator.electra.embeddings.word_embeddings.weight
    return {"generator": generator, "discriminator": discriminator}


def joint(networks: Mapping[str, PreTrainedModel], example: Batch, fake: np.ndarray) -> tuple[float, dict[str, dict[str, np.ndarray]]]:
    """(loss, {network: its gradients by name}) of mlm + 50 · rtd on a corrupted example of ours with our samples in `fake`, in float64.

    The discriminator's loss is transformers' own; the generator's is written here, since a place that was drawn twice counts twice.
    """
    found = {name: one.double() for name, one in copy.deepcopy(dict(networks)).items()}
    fields = ("tokens", "types", "segments", "masked_at", "masked_ids", "original")
    rows = {name: torch.tensor(example[name], dtype=torch.int64) for name in fields}
    both = {"attention_mask": (rows["segments"] > 0).long(), "token_type_ids": rows["types"]}
    logits = found["generator"](input_ids=rows["tokens"], **both).logits
    chosen = torch.tensor(example["masked"]) > 0
    scores = torch.gather(logits, 1, rows["masked_at"][..., None].expand(-1, -1, logits.shape[-1]))[chosen]
    mlm = torch.nn.functional.cross_entropy(scores, rows["masked_ids"][chosen])
    tokens = torch.tensor(fake, dtype=torch.int64)
    rtd = found["discriminator"](input_ids=tokens, labels=(tokens != rows["original"]).double(), **both).loss
    loss = mlm + 50 * rtd
    loss.backward()
    return loss.item(), {name: {path: p.grad.numpy() for path, p in one.named_parameters()} for name, one in found.items()}


def configs(networks: Mapping[str, PreTrainedModel]) -> dict[str, dict]:
    """{network: what save_pretrained writes as its config.json}."""
    return {name: {**one.config.to_dict(), "architectures": [type(one).__name__]} for name, one in networks.items()}
