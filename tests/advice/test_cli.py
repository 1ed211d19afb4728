"""The advice about the options of commands, followed: the command runs, with the option as the message says."""

import functools
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from jaxenc.cli import bench
from jaxenc.convert import runs
from jaxenc.data import tokenizers
from jaxenc.errors import UserError
from jaxenc.families import MODELS
from jaxenc.families.foreign import Structure
from jaxenc.inference.model import Model
from tests import tiny
from tests.advice import commands
from tests.advice.commands import Argv, Rule, with_value, without
from tests.advice.following import follow
from tests.training.conftest import make_data

pytestmark = pytest.mark.usefixtures("one_device")
SIZES = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 32, "positions": 24}


@pytest.fixture(scope="module")
def one_device():
    with tiny.on_one_device():
        yield


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """text.txt, its tokenizer and data, `run`, a random BERT with a head for masked tokens, and `decoder`, a random GPT."""
    folder = tmp_path_factory.mktemp("world") / "made"
    make_data(folder, 1)
    tool = tokenizers.load(folder / "tokenizer")
    for name, kind, head in (("run", "bert", "mlm"), ("decoder", "gpt", "next_token")):
        config = runs.run_for(Structure(MODELS[kind](**SIZES), (head,))).with_vocabulary(tool.vocabulary)
        Model(config, tiny.drawn(config), tool).save(folder / name)
    return folder


@pytest.fixture
def here(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory with links to what is in `world`, and a few files of text."""
    for path in world.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file.txt").write_text("text\n")
    (tmp_path / "file.npz").write_text("text\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "rows.jsonl").write_text('{"body": "ba de", "title": "ki"}\n')
    (tmp_path / "both.jsonl").write_text('{"text": "ba de", "words": ["ki"]}\n')
    (tmp_path / "bad.jsonl").write_text('{"text": "ba de"}\n[1]\n')
    (tmp_path / "table.csv").write_text("title,body\nki,ba de\n")
    (tmp_path / "wide.csv").write_text("text,body\nki,ba de,mu\n")
    (tmp_path / "latin.txt").write_bytes("bé dé\n".encode("latin-1") * 9)
    (tmp_path / "text.gz").write_text("ba de\n")
    (tmp_path / "words.txt").write_text("zebra\n")
    (tmp_path / "none.txt").write_text("\n")
    (tmp_path / "mix.json").write_text("3")
    (tmp_path / "two.json").write_text(json.dumps({"weights": [1.0] * 9, "gamma": 1.0}))
    monkeypatch.chdir(tmp_path)
    for name in ("_step", "_attention", "_data"):
        monkeypatch.setattr(bench, name, lambda args: 0)
    return tmp_path


def _file(option: str, name: str) -> Rule:
    return lambda match, error, argv: [with_value(argv, option, name)]


def _rewrite(text: str) -> Rule:
    """Writes other content to the file that the error is about."""

    def rule(match: re.Match[str], error: UserError, argv: Argv) -> list[Argv]:
        Path(re.sub(r":\d+$", "", error.where)).write_text(text)
        return [argv]

    return rule


def _named(option: str) -> Rule:
    """Each name that the advice lists, as the value of an option."""
    return lambda match, error, argv: [with_value(argv, option, name) for name in re.split(r", | or | and ", match[1])]


def _other_piece(match: re.Match[str], error: UserError, argv: Argv) -> list[Argv]:
    """`leave it out`, of a piece or of an option."""
    if piece := re.match("'(.+)' is", error.what):
        return [tuple(item for item in argv if item != piece[1])]
    return commands._left_out(match, error, argv)


RULES: dict[str, Rule] = {
    r"^leave it out$": _other_piece,
    r"^check the (?:path|pattern)$|^name (?:files|a file|the text)|^remove it from --input$": _file("--input", "text.txt"),
    r"^choose with --field text or --field words$": lambda match, error, argv: [(*argv, "--field", name) for name in ("text", "words")],
    r"--field(?: NAME)?[:,]? (?:one of )?([\w, ]+)$": _named("--field"),
    r"^write one object a line|^write \{\"text\"": _rewrite('{"text": "ba de"}\n'),
    r"^quote cells with delimiters in them$": _rewrite('text,body\nki,"ba de,mu"\n'),
    r"^name one such as (\w+) or (\w+)$": lambda match, error, argv: [with_value(argv, "--encoding", name) for name in match.groups()],
    r"--encoding (\w+)": lambda match, error, argv: [(*argv, "--encoding", match[1])],
    r"^rename it, or get it again$": lambda match, error, argv: [with_value(argv, "--input", str(Path(error.where).rename("renamed.txt")))],
    r"^add (--[\w-]+(?: and --[\w-]+)*)$": lambda match, error, argv: [
        (*argv, *(item for name in match[1].split(" and ") for item in (name, "8")))
    ],
    r"^name one with --text, or a file with --input$": lambda match, error, argv: [
        (*argv, "--text", "ba de"),
        (*argv, "--input", "text.txt"),
    ],
    r"^name a word exactly as it is written there$": _file("--word", "baba"),
    r"^write (\S+) in the place of a word$": lambda match, error, argv: [with_value(argv, "--text", f"baba {match[1]}")],
    r"^it takes (\d+) to (\d+)": lambda match, error, argv: [
        with_value(argv, f"--{error.what.split()[0].replace('_', '-')}", n) for n in match.groups()
    ],
    r"^it takes (\d+) or more(?: sentences)?$|^it takes (\d+), for all": lambda match, error, argv: [
        with_value(
            argv,
            {"max_new": "--max-new", "samples": "--samples", "top_k": "--top-k", "batch": "--batch"}[
                error.what.removeprefix("the ").split()[0]
            ],
            match[1] or match[2],
        )
    ],
    r"^set a temperature above 0, such as (\d)$": lambda match, error, argv: [(*argv, "--temperature", match[1])],
    r"^leave out (stateful)$": lambda match, error, argv: [without(argv, f"--{match[1]}")],
    r"^name a UTF-8 file with one piece a line$": _rewrite("zebra\n"),
    r"^shorten it$": lambda match, error, argv: [with_value(argv, "--text", "ba de")],
    r"^give a text with a word$": lambda match, error, argv: [with_value(argv, "--text", "ba de")],
    r"^write (\{\"weights\".+\})$": _rewrite('{"weights": [1.0, 1.0], "gamma": 1.0}'),
    r"^give one for each$": _rewrite('{"weights": [1.0, 1.0], "gamma": 1.0}'),
    r"^choose such a name: the ending says the format$": lambda match, error, argv: [
        with_value(argv, "--out", f"out{end}") for end in re.findall(r"\.\w+", error.what.partition("neither")[2])
    ],
    r"^write it so, as in (\S+)$": lambda match, error, argv: [tuple(match[1] if item == error.where else item for item in argv)],
    r"^give a value of the field's type$": lambda match, error, argv: [
        tuple(
            f"{item.partition('=')[0]}={'true' if 'not true' in error.what else 7}" if item.startswith("--config.") else item
            for item in argv
        )
    ],
    r"did you mean ([^?]+)\?$": lambda match, error, argv: [
        tuple(
            f"--config.{name}=7" if item.startswith("--config.") else name if item == error.where.rpartition(" ")[2] else item
            for item in argv
        )
        for name in match[1].split(", ")
    ],
    r"^a recipe is FAMILY/SIZE, such as (\S+),": lambda match, error, argv: [with_value(argv, "--config", match[1])],
    r"^name (?:a folder that `jaxenc tokenizer` made|the folder of a tokenizer)$": _file("--tokenizer", "tokenizer"),
    r"^name (\S*tokenizer)$": lambda match, error, argv: [with_value(argv, "--tokenizer", match[1])],
    r"^name (\S+/\S+)$": lambda match, error, argv: [with_value(argv, "--config", match[1])],
    r"^name a recipe or a Python file$": _file("--config", "bert/base"),
    r"^is a shell variable unset\? Give a value or leave it out$": lambda match, error, argv: [with_value(argv, error.where, "out")],
    r"^`jaxenc (inspect .+ --fields)` prints the fields$": lambda match, error, argv: [
        tuple(shlex.split(match[1].replace("NAME", argv[argv.index("--config") + 1])))
    ],
    r"^`(jaxenc tokenizer --input FILES --out \S+)` makes one$": lambda match, error, argv: [
        tuple(shlex.split(match[1].replace("FILES", "text.txt"))[1:])
    ],
    r"^give pieces with at least one|^name a file|^write at least one": _rewrite("zebra\n"),
    r"^name a run directory or one of its checkpoints$": _file("--model", "run"),
}
advised = functools.partial(commands.advised, more=RULES)

FAULTS = """
tokenizer --input text.txt --type wordpiece --pretokenized --out t
tokenizer --input text.txt --vocab-size 3 --out t
tokenizer --input text.txt --vocab-size 99999999999 --out t
tokenizer --input text.txt --type unigram --vocab-size 3 --out t
tokenizer --input text.txt --workers 0 --out t
tokenizer --input text.txt --typ bpe --out t
tokenizer --input text.txt --out t --zzz
tokenizr --input text.txt --out t
zzz
tokenizer --input text.txt --type wp --out t
tokenizer --input text.txt --out t text.txt --config.train.steps=3
tokenizer --input text.txt --out full
tokenizer --input text.txt --out text.txt/t
tokenizer --input text.txt --out=
tokenizer --input missing.txt --out t
tokenizer --input missing*.txt --out t
tokenizer --input empty.txt --out t
tokenizer --input none.txt --out t
tokenizer --input data --out t
tokenizer --input rows.jsonl --out t --vocab-size 60
tokenizer --input both.jsonl --out t --vocab-size 60
tokenizer --input both.jsonl --field nothing --out t --vocab-size 60
tokenizer --input bad.jsonl --out t --vocab-size 60
tokenizer --input table.csv --out t --vocab-size 60
tokenizer --input table.csv --field other --out t --vocab-size 60
tokenizer --input wide.csv --out t --vocab-size 60
tokenizer --input latin.txt --out t --vocab-size 60
tokenizer --input text.txt --encoding latin-99 --out t
tokenizer --input text.txt --format nothing --out t
tokenizer --input text.gz --out t --vocab-size 60
data --input text.txt --tokenizer tokenizer --out d --held-out 2
data --input text.txt --tokenizer tokenizer --out d --beam-options x
data --input text.txt --tokenizer tokenizer --out full
data --input text.txt --tokenizer full --out d
data --input text.txt --tokenizer text.txt --out d
data --input text.txt --tokenizer run --out d
data --input text.txt --tokenizer data --out d
data --input text.txt --tokenizer tokenizer --out d --drop-duplicates near --duplicate-words 0
data --input text.txt --tokenizer tokenizer --out d --drop-duplicates near --duplicate-permutations 1
data --input text.txt --tokenizer tokenizer --out d --drop-duplicates near --duplicate-similarity 2
bench step --config bert/base --steps 0
bench step --config bert/base --length 3
bench attention
bench data --data data --peer hf
bench data --data data --config.train.steps=3
export --model run --to allennlp --dtype float16 --out e
export --model run --out full
export --model full --out e
resize-vocab --model run --add none.txt --out r
resize-vocab --model run --tokens baba quagga --out r
neighbours --model run --input text.txt --word baba --layer 9
neighbours --model run --input text.txt --word baba --count 0
neighbours --model run --input text.txt --word zebra
complete --model decoder
complete --model decoder --text ba --max-new 0
complete --model decoder --text ba --samples 2 --temperature 0
complete --model decoder --text ba --top-k 9999
complete --model decoder --text ba --top-k -1 --max-new 2
embed --model run --input words.txt --out v.txt
embed --model run --input words.txt --out file.npz
embed --model run --input words.txt --out v.npz --layers some
embed --model run --input words.txt --out v.npz --layers mix:mix.json
embed --model run --input words.txt --out v.npz --layers mix:two.json
embed --model run --input words.txt --out v.npz --batch 0
embed --model run --input words.txt --out v.npz --stateful
fill-mask --model run --text baba
fill-mask --model run --text '[MASK]' --k 0
inspect --config bert/tny --no-compile
inspect --config zzz --no-compile
inspect --config bert/base:x --no-compile
inspect --config missing.py --no-compile
inspect --config bert/tiny --no-compile --config.train.stps=3
inspect --config bert/tiny --no-compile --config.zzz=3
inspect --config bert/tiny --no-compile --config.train.steps=x
inspect --config bert/tiny --no-compile --config.train.steps
""".strip().split("\n")


# Of several that compile or read the same, one is in the short suite.
LONG = (
    "--duplicate-words",
    "--duplicate-permutations",
    "--max-new 0",
    "--samples 2",
    "--out v.txt",
    "--config zzz",
    "--word zebra",
    "--add none",
    "--layer 9",
    "--layers some",
)


def marked(fault: str) -> Any:
    return pytest.param(fault, marks=pytest.mark.full) if any(part in fault for part in LONG) else fault


@pytest.mark.parametrize("fault", [*map(marked, FAULTS)])
def test_of_options(fault: str, here: Path) -> None:
    assert follow(commands.run, tuple(shlex.split(fault)), advised)
