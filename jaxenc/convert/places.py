"""Recognises folders and files that are not models of transformers, or not yet, and says what to do with each kind."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from jaxenc.data.folders import described, is_run
from jaxenc.errors import UserError
from jaxenc.files import read_json

CONFIG, ADAPTER, MODULES = "config.json", "adapter_config.json", "modules.json"
# The files of weights that `formats.weights` opens.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
CHECKPOINT = re.compile(r"checkpoint-(\d+)")
# What a training run saves beside its weights.
TRAINING = ("optimizer.*", "scheduler.*", "trainer_state.json", "training_args.bin", "rng_state*", "scaler.pt")
TORCH = (".bin", ".pt", ".pth", ".ckpt", ".safetensors")
PACKED = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".zst")
# transformers 5 no longer opens them.
BEFORE_5 = "with transformers 4, `AutoModelForPreTraining.from_pretrained({text!r}, %s=True).save_pretrained('OUT')` writes them for torch"


class Kind(NamedTuple):
    """Files of one kind. patterns: of names in a folder, one of which is there; what: the words of the message; fix: the advice, in which
    {folder} and {found} are quoted for a shell, and {text} is the folder as it is, for {text!r} in Python."""

    patterns: tuple[str, ...]
    what: str
    fix: str


# In this order: the first that fits.
KINDS = (
    Kind(
        ("global_step*", "zero_to_fp32.py"),
        "the weights are in DeepSpeed's shards",
        "`python -m deepspeed.utils.zero_to_fp32 {folder} {folder}` joins them; then convert again",
    ),
    Kind(
        ("*zero_pp_rank_*", "mp_rank_*_model_states.pt"),
        "shards that DeepSpeed wrote",
        "name the folder above them",
    ),
    Kind(
        ("pytorch_model_fsdp_*",),
        "the weights are in FSDP's shards",
        "`accelerate merge-weights {found} {folder}` joins them; then convert again",
    ),
    Kind(("*.distcp",), "shards that FSDP wrote", "`accelerate merge-weights {folder} OUT` joins them"),
    Kind(("mp_rank_*", "latest_checkpointed_iteration.txt"), "a checkpoint of Megatron-LM", "convert it with the tools of Megatron-LM"),
    Kind(("*weights.hdf5",), "a model of AllenNLP", "use --from allennlp:{folder}"),
    Kind(("tf_model.h5", "*.h5"), "weights of TensorFlow's Keras", BEFORE_5 % "from_tf"),
    Kind(("flax_model.msgpack", "*.msgpack"), "weights of Flax", BEFORE_5 % "from_flax"),
    Kind(("saved_model.pb",), "a SavedModel of TensorFlow", "name the checkpoint from which it was exported, with --from tf:PREFIX"),
    Kind(("*.onnx", "onnx/*.onnx"), "a model exported to ONNX", "name the model from which it was exported"),
    Kind(("*.gguf",), "a model of GGUF, whose weights are quantized", "name the model from which it was made"),
    Kind(("openvino_model.xml",), "a model exported to OpenVINO", "name the model from which it was exported"),
)


def check(path: Path, source: str = "hf") -> None:
    """Raises UserError, which says what is at `path` and what to do, where it is not a folder of transformers with a config.json and
    weights, and its files tell what it is instead. source: what it was named as; a folder of transformers is refused as any other. Reads no
    weights."""
    if not path.exists():
        hub = re.fullmatch(r"[\w.-]+(/[\w.-]+)?", str(path)) is not None
        fix = "name one that transformers wrote; a model of the hub is downloaded first"
        raise UserError("no such folder", path, f"{fix}: `hf download {path} --local-dir OUT`" if hub else fix)
    if not path.is_dir():
        raise _of_file(path)
    if _has(path, ADAPTER) and _has(path, "adapter_model.*"):
        raise _of_adapter(path)
    if _opens(path):
        if source == "hf":
            return
        raise UserError("a folder of transformers", path, _from("hf", path))
    for found in (_of_run, _of_cache, _of_modules, _of_checkpoints, *map(_by_files, KINDS), _of_tensorflow, _of_torch, _of_rest):
        if error := found(path):
            raise error
    if source == "hf" and not (path / CONFIG).is_file():
        raise UserError(f"no config.json but {described(path)}", path, "name a folder that transformers wrote")


def note(folder: Path) -> str:
    """A line for the user about a folder that is converted in part, '' for none: sentence-transformers computes more than the encoder."""
    names = [module["type"].rpartition(".")[2] for module in _modules(folder)]
    others = ", ".join(name for name in names if name and name != "Transformer")
    return f"a model of sentence-transformers: its encoder is converted and its {others} is not" if others else ""


def _has(folder: Path, *patterns: str) -> bool:
    return any(next(folder.glob(pattern), None) is not None for pattern in patterns)


def _from(kind: str, place: Path) -> str:
    return f"use --from {shlex.quote(f'{kind}:{place}')}"


def _opens(folder: Path) -> bool:
    return (folder / CONFIG).is_file() and _has(folder, *WEIGHTS)


def _by_files(kind: Kind) -> Callable[[Path], UserError | None]:
    def of(folder: Path) -> UserError | None:
        found = next((path for pattern in kind.patterns for path in sorted(folder.glob(pattern))), None)
        if found is None:
            return None
        return UserError(f"{kind.what} ({found.name})", folder, _fix(kind, folder, found))

    return of


def _fix(kind: Kind, folder: Path, found: Path) -> str:
    return kind.fix.format(folder=_quoted(folder), found=_quoted(found), text=str(folder))


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _of_run(folder: Path) -> UserError | None:
    if not is_run(folder):
        return None
    return UserError("a run directory already, which needs no conversion", folder, f"use it as it is, as in --init-from {_quoted(folder)}")


def _of_adapter(folder: Path) -> UserError:
    base = read_json(folder / ADAPTER, "copy it again").get("base_model_name_or_path")
    what = f"an adapter of PEFT for {base}, not a model of its own"
    return UserError(what, folder, "merge it first, with peft's `merge_and_unload()` and `save_pretrained(OUT)`, and convert OUT")


def _of_cache(folder: Path) -> UserError | None:
    """A folder of the hub's cache, or the cache itself."""
    if models := sorted(folder.glob("models--*")):
        return UserError(f"a cache of the hub with {len(models)} models", folder, f"name one of them, such as {models[0]}")
    snapshots = sorted(path for path in (folder / "snapshots").glob("*") if path.is_dir())
    if not snapshots:
        return None
    main = folder / "refs" / "main"
    named = main.read_bytes().decode(errors="replace").strip() if main.is_file() else ""
    return UserError("a folder of the hub's cache", folder, _from("hf", _called(named, snapshots)))


def _called(name: str, folders: list[Path]) -> Path:
    """The one of `folders` with this name, the last where none has it."""
    return next((path for path in folders if path.name == name), folders[-1])


def _modules(folder: Path) -> list[dict[str, str]]:
    """The parts of a model of sentence-transformers, in order, [] for any other folder."""
    try:
        found = json.loads((folder / MODULES).read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    parts = [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []
    return [{name: str(part.get(name, "")) for name in ("path", "type")} for part in parts]


def _of_modules(folder: Path) -> UserError | None:
    """A model of sentence-transformers whose encoder is in a folder of its own."""
    named = {module["path"] for module in _modules(folder)}
    there = [path for path in sorted(folder.iterdir()) if path.name in named or path.name.startswith("0_")]
    place = next((path for path in there if (path / CONFIG).is_file()), None)
    return place and UserError(f"a model of sentence-transformers, whose encoder is in {place.name}", folder, _from("hf", place))


def _of_checkpoints(folder: Path) -> UserError | None:
    """The output folder of transformers' Trainer: the last of its checkpoints, or the best, where it says which that is."""
    found = sorted((int(name[1]), path) for path in folder.iterdir() if path.is_dir() and (name := CHECKPOINT.fullmatch(path.name)))
    if not found:
        return None
    folders, last = [path for _, path in found], found[-1][1]
    state = last / "trainer_state.json"
    best = read_json(state, "copy it again").get("best_model_checkpoint") if state.is_file() else None
    best = _called(str(best).rpartition("/")[2], folders)
    better = f" of which {best.name} is the best" if best != last else ""
    which = ", ".join(path.name for path in folders[-3:])
    return UserError(f"the folder of a training run, whose models are in {which}{better}", folder, _from("hf", best))


def _of_tensorflow(folder: Path) -> UserError | None:
    prefixes = sorted(path.with_suffix("") for path in folder.glob("*.index"))
    return UserError("a checkpoint of TensorFlow", folder, _from("tf", prefixes[-1])) if prefixes else None


def _of_torch(folder: Path) -> UserError | None:
    """Weights of torch without their config, or under another name."""
    files = sorted(path for path in folder.iterdir() if path.suffix in TORCH and not any(path.match(one) for one in TRAINING))
    if not files:
        return None
    if (folder / "dict.txt").is_file() and any(path.suffix == ".pt" for path in files):
        return UserError("a model of fairseq", folder, _from("fairseq", folder))
    others = ("tokenizer_config.json", "generation_config.json")
    configs = [path for path in sorted(folder.glob("*_config.json")) if path.name not in others]
    if not (folder / CONFIG).is_file() and configs:
        what = f"no config.json but a {configs[0].name}, as the first versions of transformers wrote it"
        return UserError(what, folder, f"`cp {_quoted(configs[0])} {_quoted(folder / CONFIG)}` gives it the name that is read")
    if not (folder / CONFIG).is_file():
        what = f"{files[0].name} without the config.json that says what model it is"
        return UserError(what, folder, "copy the config.json of its model there")
    name = WEIGHTS[0] if files[0].suffix == ".safetensors" else WEIGHTS[2]
    if len(files) == 1:
        what = f"no {WEIGHTS[0]} and no {WEIGHTS[2]} but {files[0].name}"
        return UserError(what, folder, f"`cp {_quoted(files[0])} {_quoted(folder / name)}` gives it the name that is read")
    names = ", ".join(path.name for path in files[:3])
    return UserError(f"no {WEIGHTS[0]} and no {WEIGHTS[2]} but {names}", folder, f"copy the one to convert to {name}")


def _of_rest(folder: Path) -> UserError | None:
    """One folder in this one; an archive; the state of a training run alone."""
    inner = [path for path in sorted(folder.iterdir()) if path.is_dir() and _opens(path)]
    if inner:
        return UserError(f"the model is in a folder of this one, {inner[0].name}", folder, _from("hf", inner[0]))
    if packed := sorted(path for path in folder.iterdir() if path.suffix in PACKED):
        return UserError(f"an archive, {packed[0].name}", folder, "unpack it and name the folder that comes out")
    if any(next(folder.glob(one), None) for one in TRAINING):
        return UserError("what a training run saves beside its weights, and no weights", folder, "name the folder with the weights")
    return None


def _of_file(path: Path) -> UserError:
    """The error for a file that was named instead of a folder. It says what the file is."""
    if path.suffix in (".index", ".meta") or ".data-" in path.name:
        return UserError("one file of a TensorFlow checkpoint", path, _from("tf", path.with_suffix("")))
    if path.suffix == ".pt" and (path.parent / "dict.txt").is_file():
        return UserError("a checkpoint of fairseq", path, _from("fairseq", path))
    if _opens(path.parent):
        return UserError("a file of a model and not its folder", path, _from("hf", path.parent))
    if path.suffix in PACKED:
        return UserError("an archive", path, "unpack it and name the folder that comes out")
    for kind in KINDS:
        if any(path.match(pattern) for pattern in kind.patterns):
            return UserError(kind.what, path, _fix(kind, path.parent, path))
    if path.suffix in TORCH:
        name = WEIGHTS[0] if path.suffix == ".safetensors" else WEIGHTS[2]
        return UserError("a file and not a folder", path, f"put it in a folder as {name}, with the config.json of its model")
    return UserError("a file and not a folder", path, "name a folder that transformers wrote")
