"""The process of `bench.peer`: reads a run as JSON from stdin, times transformers' step for it, prints one JSON line. JAX is on the CPU
there."""

import inspect
import json
import sys
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
import transformers
from torch.nn import Module, functional

from jaxenc.bench.clock import seconds_a_call
from jaxenc.convert import hf
from jaxenc.data.vocabulary import unnamed
from jaxenc.errors import UserError
from jaxenc.inference.model import Model
from jaxenc.inference.network import objective_of
from jaxenc.training.run import Run, from_dict
from jaxenc.training.state import parameters

# The share of a row that is predicted: the end of a permutation (Yang et al. 2019, K = 6).
LAST = 1 / 6
# The weight of the discriminator's loss (Clark et al. 2020).
DETECTION = 50.0
WARM_UP = 3


class OwnLoss(Module):
    """The loss that transformers computes."""

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Mapping[str, torch.Tensor], at: torch.Tensor) -> torch.Tensor:
        """inputs: the arguments of the model; at is not used."""
        return self.model(**inputs).loss


class GatheredLoss(Module):
    """The masked-token loss of a model of transformers with its head applied to the predicted places only, and the loss of its sentence
    pairs where it has one."""

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Mapping[str, torch.Tensor], at: torch.Tensor) -> torch.Tensor:
        """at: [rows, predictions], the places that are predicted."""
        inputs = dict(inputs)
        labels, pair = torch.gather(inputs.pop("labels"), 1, at), inputs.pop("next_sentence_label", None)
        states = self.model.base_model(**inputs)
        chosen = torch.gather(states[0], 1, at[..., None].expand(-1, -1, states[0].shape[-1]))
        loss = functional.cross_entropy(masked_head(self.model)(chosen).float().flatten(0, 1), labels.flatten())
        if pair is None:
            return loss
        return loss + functional.cross_entropy(self.model.cls.seq_relationship(states[1]).float(), pair)


def masked_head(model: Module) -> Module | None:
    """The masked-token head of a model of transformers; None where it has none, or reads it otherwise than from the last layer."""
    head = getattr(model, "cls", None)
    return head.predictions if head is not None else getattr(model, "lm_head", None)


class JointLoss(Module):
    """The joint loss of a generator and a discriminator that share their embeddings (Clark et al. 2020)."""

    def __init__(self, generator: Module, discriminator: Module) -> None:
        super().__init__()
        generator.base_model.embeddings = discriminator.base_model.embeddings
        generator.tie_weights()
        self.generator, self.discriminator = generator, discriminator

    def forward(self, inputs: Mapping[str, torch.Tensor], at: torch.Tensor) -> torch.Tensor:
        """inputs: `input_ids`, masked, and `labels`, -100 where a token is not predicted."""
        found, labels = self.generator(**inputs), inputs["labels"]
        with torch.no_grad():
            noise = -torch.log(-torch.log(torch.rand_like(found.logits.float()).clamp_(1e-9, 1 - 1e-7)))
            sampled = (found.logits.float() + noise).argmax(-1)
        tokens = torch.where(labels >= 0, sampled, inputs["input_ids"])
        wrong = ((tokens != labels) & (labels >= 0)).float()
        return found.loss + DETECTION * self.discriminator(input_ids=tokens, labels=wrong).loss


def work_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What is timed: the configs of the models, rows, length, precision, and what `bench.peer` asked for. Raises UserError for a model that
    transformers does not have."""
    run = from_dict(asked["run"])
    phase, causal = run.plan[0], "causal" in run.model.attentions and run.model.attention == "causal"
    sizes = {"rows": phase.batch, "length": phase.length, "precision": run.train.precision, "causal": causal}
    return {"configs": configs(run), **sizes, "predictions": predictions(run), **asked}


def predictions(run: Run) -> int:
    """The most masked tokens of a row in the first phase, for which the run's own step computes logits; 0 for an objective without a
    mask."""
    phase, masking = run.plan[0], getattr(run.objective, "masking", None)
    return masking(unnamed(run.model.vocab_size), phase.length, phase.max_predictions).predictions if masking else 0


def configs(run: Run) -> dict[str, dict[str, Any]]:
    """The config.json of each model that `run` trains in transformers, by its folder in an export; '' for a single model. Raises UserError
    for a model that transformers does not have."""
    shapes, _ = parameters(objective_of(run, None))
    return {folder: hf.export(model).config for folder, model in hf.models(Model(run, shapes, None)).items()}


def module(work: Mapping[str, Any]) -> Module:
    """The module of the configs, whose `forward` gives a loss."""
    models = {name: _model(config) for name, config in work["configs"].items()}
    if len(models) > 1:
        if work["gathered"]:
            sys.exit("two networks: use --peer hf")
        return JointLoss(**models)
    (model,) = models.values()
    if work["gathered"] and (work["causal"] or masked_head(model) is None or "perm_mask" in arguments(model)):
        sys.exit(f"{type(model).__name__} has no masked-token head: use --peer hf")
    return GatheredLoss(model) if work["gathered"] else OwnLoss(model)


def arguments(model: Module) -> Collection[str]:
    """The names of the arguments of a model of transformers."""
    return inspect.signature(model.forward).parameters


def _model(config: Mapping[str, Any]) -> Module:
    # The same function as gelu_new in one kernel; gelu_new computes a power in float32 and keeps it for the backward pass.
    kept = {name: "gelu_pytorch_tanh" if value == "gelu_new" else value for name, value in config.items() if name != "model_type"}
    parsed = transformers.AutoConfig.for_model(config["model_type"], **kept)
    return getattr(transformers, config["architectures"][0])(parsed)


def rows(work: Mapping[str, Any], model: Module, device: str) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """(the arguments of the model, the predicted places [rows, predictions]) for random text."""
    config = next(iter(work["configs"].values()))
    shape, draw = (work["rows"], work["length"]), torch.Generator().manual_seed(0)
    ids = torch.randint(max(work["special"]) + 1, config["vocab_size"], shape, generator=draw).to(device)
    order = torch.argsort(torch.rand(shape, generator=draw), dim=-1).to(device)
    takes = arguments(next(iter(model.children())))
    if "perm_mask" in takes:
        rank, at = torch.argsort(order, dim=-1), order[:, -round(LAST * shape[1]) :]
        return {
            "input_ids": ids,
            "perm_mask": (rank[:, :, None] <= rank[:, None, :]).float(),
            "target_mapping": functional.one_hot(at, shape[1]).float(),
            "labels": torch.gather(ids, 1, at),
        }, at
    pairs = {name: torch.zeros(shape[0], dtype=torch.long, device=device) for name in takes if name.endswith("_label")}
    if work["causal"]:
        return {"input_ids": ids, "labels": ids}, order
    at = order[:, : work["predictions"]]
    chosen = torch.zeros(shape, dtype=torch.bool, device=device).scatter_(1, at, True)
    masked = torch.where(chosen, torch.full_like(ids, max(work["special"])), ids)
    # As rows with padding have in training.
    mask = {"attention_mask": torch.ones_like(ids)}
    return {"input_ids": masked, "labels": torch.where(chosen, ids, torch.full_like(ids, -100)), **mask, **pairs}, at


def step_of(model: Module, inputs: Mapping[str, torch.Tensor], at: torch.Tensor, precision: str) -> Callable[[], None]:
    """One training step, compiled, as a function without arguments."""
    device = at.device.type
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    compiled = torch.compile(model)

    def step() -> None:
        with torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
            loss = compiled(inputs, at)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def timed(step: Callable[[], None], steps: int, wait: Callable[[], None]) -> tuple[float, float, float]:
    """(seconds to warm up, seconds a step, CPU seconds a step): after the warm-up, medians as of `seconds_a_call`."""
    began = time.monotonic()
    for _ in range(WARM_UP):
        step()
    wait()
    warm = time.monotonic() - began
    return warm, *seconds_a_call(step, steps, lambda _: wait())


def main() -> None:
    """Reads the work, prints a `bench.peer.PeerTiming` as JSON."""
    try:
        work = work_of(json.load(sys.stdin))
    except UserError as error:
        sys.exit(str(error))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high" if work["precision"] == "bfloat16" else "highest")
    model = module(work).to(device).train()
    inputs, at = rows(work, model, device)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    warm, seconds, cpu = timed(step_of(model, inputs, at, work["precision"]), work["steps"], wait)
    peak = torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else 0.0
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}"
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    tokens = work["rows"] * work["length"] / seconds
    sizes = {"rows": work["rows"], "length": work["length"]}
    times = {"warm_up_s": warm, "step_ms": seconds * 1e3, "cpu_ms": cpu * 1e3, "tokens_per_second": tokens, "peak_gb": peak}
    print(json.dumps({"peer": versions, "device": name, **sizes, **times}))


if __name__ == "__main__":
    main()
