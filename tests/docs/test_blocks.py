"""Every block of code of README and docs/ is checked, or a comment above it says why not (tests/docs/blocks.py).

Command lines are parsed by the parsers of `jaxenc`, with the fields of their recipes; scripts, modules and extras that they name exist.
Blocks of Python are run by tests/docs/test_python.py.
"""

import contextlib
import importlib.util
import re
from collections.abc import Iterator, Sequence

import pytest

from tests.docs import blocks, settings
from tests.docs.blocks import PAGES, ROOT, Block

BLOCKS = [block for page in PAGES for block in blocks.blocks(page)]
SHELL = [block for block in BLOCKS if block.language in ("", "sh", "bash") and not block.mark.startswith(("output", "run by"))]
# Commands that say nothing of jaxenc.
PLAIN = ("cd", "git", "source", "ruff", "export", "cat", "zcat", "echo")
EXTRAS = set(re.findall(r'^        "(\w+)": \[', (ROOT / "setup.py").read_text(), re.MULTILINE))


class Unknown(Exception):
    """A command of a kind that nothing here checks."""


def of_jaxenc(words: Sequence[str]) -> Iterator[list[str]]:
    """What follows `jaxenc` in a command, also in one that a launcher or `bash -c` starts. AssertionError where the command
    names a file, a module or an extra that does not exist; Unknown where it is of another kind."""
    words = [word for i, word in enumerate(words) if not (re.match(r"\w+=", word) and all("=" in one for one in words[:i]))]
    if words and words[0] in PLAIN:
        return
    if "-c" in words and words[words.index("-c") - 1] == "bash":
        for part in blocks.words(words[words.index("-c") + 1]):
            yield from of_jaxenc(part)
        words = words[: words.index("-c")]
    if "jaxenc" in words:
        at = words.index("jaxenc")
        # The launchers of launch/ give their --workdir to the command.
        passed = [word for i, word in enumerate(words[:at]) if "--workdir" in words[max(i - 1, 0) : i + 1]]
        yield [*words[at + 1 :], *passed]
        words = words[:at]
    if not words or words[0] in ("exec", "srun", "env"):
        return
    if words[0] == "bash":
        assert (ROOT / words[1]).is_file(), f"no script {words[1]}"
    elif "pip" in [word.rpartition("/")[2] for word in words[:3]]:
        of_ours = (word for word in words if word.startswith((".[", "jaxenc[")) or "jaxenc-" in word)
        extras = re.findall(r"\[([\w,]+)\]", " ".join(of_ours))
        assert {name for listed in extras for name in listed.split(",")} <= EXTRAS, words
    elif re.fullmatch(r"(\.venv/bin/)?python[\d.]*", words[0]) and words[1] == "-m":
        assert importlib.util.find_spec(words[2]), f"no module {words[2]}"
    elif not (re.fullmatch(r"python3?", words[0]) and (ROOT / words[1]).is_file()):
        raise Unknown(f"nothing checks `{' '.join(words)}`: mark the block")


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.name)
def test_commands_parse_and_their_fields_exist(block: Block, capsys: pytest.CaptureFixture) -> None:
    """And no field is set that has no effect. Of a block that is not run, only the commands of jaxenc are looked at."""
    for command in blocks.commands(block.text):
        for words in blocks.words(command):
            with contextlib.suppress(*[Unknown] * bool(block.mark)):
                for argv in of_jaxenc(words):
                    settings.check(argv)
    warned = [line for line in capsys.readouterr().err.splitlines() if "no effect" in line and "tensorboard" not in line]
    assert not warned, "\n".join(warned)


def test_every_block_is_checked_or_marked() -> None:
    others = [block.name for block in BLOCKS if not block.mark and block not in SHELL and block.language != "python"]
    assert not others, f"mark them, as tests/docs/blocks.py says: {others}"


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.mark.startswith("run by")], ids=lambda block: block.name)
def test_who_runs_a_block_reads_its_page(block: Block) -> None:
    test = ROOT / block.mark.removeprefix("run by ")
    assert block.page.name in test.read_text()


def test_a_wrong_block_is_found() -> None:
    """The check itself: an unknown field, option, command, script, extra, program and recipe, each in a line that is else right."""
    wrong = (
        "jaxenc pretrain --config bert/small --config.train.stepz=3 --workdir runs/x",
        "jaxenc pretrain --config bert/smal --workdir runs/x",
        "jaxenc pretrain --config bert/small --workdirs runs/x",
        "bash launch/local.sh --procs 2 -- bash -c 'cd a && exec jaxenc pretrains'",
        "bash launch/no_such.sh",
        "pip install -e '.[cudda]'",
        "JAX_PLATFORMS=cpu docker run x",
        "python -m tests.no_such",
        "jaxenc finetune ... --config tasks/text --config.task.lable=x",
    )
    for line in wrong:
        with pytest.raises(Exception, match=".") as error:
            for words in blocks.words(line):
                for argv in of_jaxenc(words):
                    settings.check(argv)
        assert error.type.__name__ in ("UserError", "AssertionError", "ModuleNotFoundError", "Unknown"), (line, error)
