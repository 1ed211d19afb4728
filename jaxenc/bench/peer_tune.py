"""The process of the peer of `jaxenc bench finetune`: reads what `bench.handover` returns as JSON from stdin, fine-tunes every seed in
transformers and prints one JSON line. It runs without JAX."""

import collections
import inspect
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import transformers
from torch.nn import Module

Inputs = dict[str, torch.Tensor]
# Our fields by the arguments of transformers.
ARGUMENTS = {"input_ids": "tokens", "token_type_ids": "types", "attention_mask": "segments"}
TRIED = 20


def opened(folder: str, device: str) -> Module:
    """The model in float32, with the attention that transformers chooses itself: SDPA where the family has it."""
    found = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    return found.to(device)


def batches(path: str, model: Module, label: str, device: str) -> list[Inputs]:
    """The batches of a file of `handover.stacked`, on the device, as arguments of the model. label: its field, '' for none."""
    with np.load(path) as held:
        lengths = held["lengths"].tolist()
        arrays = {name: torch.from_numpy(held[name]).to(device) for name in held.files if "." in name}
    takes = inspect.signature(model.forward).parameters
    chosen = {argument: name for argument, name in ARGUMENTS.items() if argument in takes} | ({"labels": label} if label else {})
    of_length = {length: _inputs({argument: arrays[f"{name}.{length}"] for argument, name in chosen.items()}) for length in set(lengths)}
    found = [next(of_length[length]) for length in lengths]
    if model.config.problem_type == "multi_label_classification":
        return [{**one, "labels": one["labels"].float()} if label else one for one in found]
    return found


def _inputs(arrays: Mapping[str, torch.Tensor]) -> Iterator[Inputs]:
    whole = {name: array if array.is_floating_point() else array.long() for name, array in arrays.items()}
    whole["attention_mask"] = (whole["attention_mask"] > 0).long()
    return ({name: array[step] for name, array in whole.items()} for step in range(len(whole["attention_mask"])))


def usual(steps: Sequence[Inputs]) -> Inputs:
    """The first batch of the row length that most batches have."""
    length = collections.Counter(inputs["input_ids"].shape[-1] for inputs in steps).most_common(1)[0][0]
    return next(inputs for inputs in steps if inputs["input_ids"].shape[-1] == length)


class AdamW:
    """torch's AdamW with the numbers of `handover.adamw`, whatever its bias correction is, on the groups of `handover.groups`."""

    def __init__(self, model: Module, groups: Sequence[Mapping[str, Any]], numbers: Mapping[str, Any]) -> None:
        named = dict(model.named_parameters())
        self.trained = [named[name] for group in groups for name in group["names"]]
        for parameter in named.values():
            parameter.requires_grad_(any(parameter is one for one in self.trained))
        of_group = [{"params": [named[name] for name in group["names"]]} for group in groups]
        fused = self.trained[0].device.type == "cuda"
        self._inner = torch.optim.AdamW(of_group, lr=0.0, betas=(numbers["beta1"], numbers["beta2"]), fused=fused)
        self._groups, self._numbers = groups, numbers

    def step(self, step: int) -> None:
        """Clips the gradients, takes step number `step`, from 0, and drops them."""
        numbers = self._numbers
        if numbers["clip"]:
            torch.nn.utils.clip_grad_norm_(self.trained, numbers["clip"])
        for mine, group in zip(self._inner.param_groups, self._groups, strict=True):
            rate = numbers["rates"][step] * group["factor"]
            mine["lr"], mine["eps"], mine["weight_decay"] = settings(numbers, step + 1, rate, group["decays"])
        self._inner.step()
        self._inner.zero_grad(set_to_none=True)


def settings(numbers: Mapping[str, Any], count: int, rate: float, decays: bool) -> tuple[float, float, float]:
    """(lr, eps, weight_decay) with which update number `count` of torch's AdamW, from 1, is ours at the learning rate `rate`.

    torch takes lr · sqrt(b) / a · m / (sqrt(v) + eps · sqrt(b)), with the corrections a = 1 - beta1^count and b = 1 - beta2^count, and
    lr · weight_decay of the parameter.
    """
    decay, root = numbers["weight_decay"] * decays, math.sqrt(1 - numbers["beta2"] ** count)
    if not numbers["bias_correction"]:
        times = (1 - numbers["beta1"] ** count) / root
        return rate * times, numbers["epsilon"] / root, decay / times
    return rate, numbers["epsilon"] / (1 if numbers["epsilon_added"] == "after_correction" else root), decay


def fastest(model: Module, inputs: Inputs, precision: str) -> tuple[str, Callable[..., Any]]:
    """(`eager` or `compiled`, that form of the model): the one whose loss and gradients of these inputs take less time."""
    seconds = {}
    for name, forward in (forms := {"eager": model, "compiled": torch.compile(model, dynamic=False)}).items():
        for part in (3, TRIED):
            torch.cuda.synchronize()
            began = time.monotonic()
            for _ in range(part):
                loss_of(forward, inputs, precision).backward()
                model.zero_grad(set_to_none=True)
            torch.cuda.synchronize()
            seconds[name] = time.monotonic() - began
    print(f"peer: {', '.join(f'{name} {1e3 * spent / TRIED:.2f} ms' for name, spent in seconds.items())}", file=sys.stderr)
    chosen = min(seconds, key=seconds.__getitem__)
    return chosen, forms[chosen]


def loss_of(forward: Callable[..., Any], inputs: Inputs, precision: str) -> torch.Tensor:
    """The loss that transformers computes; in bfloat16 under autocast."""
    with torch.autocast(inputs["input_ids"].device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        return forward(**inputs).loss


def train(
    forward: Callable[..., Any], model: Module, steps: Sequence[Inputs], optimizer: AdamW, precision: str, wait: Callable[[], None]
) -> tuple[np.ndarray, float]:
    """(the loss of every step, float32; seconds a step over the second half of them)."""
    losses, half = [], len(steps) // 2
    model.train()
    for number, inputs in enumerate(steps):
        if number == half:
            wait()
            began = time.monotonic()
        loss = loss_of(forward, inputs, precision)
        loss.backward()
        optimizer.step(number)
        losses.append(loss.detach())
    wait()
    return torch.stack(losses).float().cpu().numpy(), (time.monotonic() - began) / (len(steps) - half)


def logits_of(model: Module, dev: Sequence[Inputs], precision: str) -> np.ndarray:
    """The logits of all dev rows and of the padding rows after them, float32 [rows, classes]."""
    model.eval()
    with torch.no_grad(), torch.autocast(dev[0]["input_ids"].device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        return torch.cat([model(**inputs).logits.float() for inputs in dev]).cpu().numpy()


def tuned(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Fine-tunes every seed of what `handover.write` returns. Returns the fields of `tune.Side` that are known here; the losses and logits
    of a seed go to its `found.npz`."""
    device, precision, seeds = "cuda" if torch.cuda.is_available() else "cpu", asked["precision"], asked["seeds"]
    transformers.utils.logging.disable_progress_bar()
    torch.set_float32_matmul_precision("high" if precision == "bfloat16" else "highest")
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    # All seeds are trained in one module, so that it is compiled once.
    model = opened(seeds[0]["model"], device).train()
    form, forward = "eager", model
    if device == "cuda" and len(asked["adamw"]["rates"]) > TRIED:
        form, forward = fastest(model, usual(batches(seeds[0]["train.npz"], model, asked["label"], device)), precision)
    seconds, rates = [], []
    for one in seeds:
        began = time.monotonic()
        torch.manual_seed(one["seed"])
        model.load_state_dict(opened(one["model"], device).state_dict())
        steps, dev = batches(one["train.npz"], model, asked["label"], device), batches(asked["dev"], model, "", device)
        losses, of_step = train(forward, model, steps, AdamW(model, asked["groups"], asked["adamw"]), precision, wait)
        logits = logits_of(model, dev, precision)
        seconds.append(time.monotonic() - began)
        rates.append(asked["batch"] / of_step)
        np.savez(one["found.npz"], losses=losses, logits=logits)
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    side = f"transformers {transformers.__version__}, torch {torch.__version__}, {form}"
    return {"side": side, "device": name, "seconds": seconds, "examples_per_second": rates}


def main() -> None:
    """Reads what `handover.write` returns from stdin, prints what `tuned` returns, both as JSON."""
    print(json.dumps(tuned(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
