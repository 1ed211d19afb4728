"""Whether the files of one folder hold one vocabulary: tokenizer.json, which is read, and the original format's files next to it."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from jaxenc.data.tokenizers import checks, merges, vocab_txt
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.sentencepiece.model_file import parsed
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.errors import UserError
from jaxenc.files import read_json, read_lines, user_errors

NOTHING = "nothing"


def check(path: Path, data: Mapping[str, Any], tool: Tokenizer) -> None:
    """Raises UserError where a file next to the tokenizer.json at `path` has another piece for an id, or another merge. The message names
    both files and the first difference.

    data: the content of the tokenizer.json; tool: the tokenizer opened from it. The other file may lack added pieces. The white space after
    a piece of vocab.txt, and lines that are blank or hold a piece that a later one holds, count for nothing; see vocab_txt.py.
    """
    kind = data["model"]["type"]
    name, read = PIECES.get(kind, ("", _lines))
    if name and (other := path.with_name(name)).is_file():
        with checks.damaged(path):
            added = {int(entry["id"]) for entry in data.get("added_tokens") or []}
        ours = {index: vocab_txt.without_end(tool.token(index)) for index in range(tool.vocabulary.ids)}
        _compare(path, other, "id", ours, read(other), added)
    if kind == "BPE" and (other := path.with_name(merges.NAME)).is_file():
        merged = [merge if isinstance(merge, str) else " ".join(merge) for merge in data["model"]["merges"]]
        _compare(path, other, "merge", dict(enumerate(merged)), dict(enumerate(merges.lines(other))))


def _compare(
    path: Path, other: Path, what: str, ours: Mapping[int, str], theirs: Mapping[int, str], optional: Collection[int] = ()
) -> None:
    for index in sorted({*ours, *theirs}):
        one, two = ours.get(index, NOTHING), theirs.get(index, NOTHING)
        if one != two and one and two and not (index not in theirs and index in optional):
            raise UserError(
                f"{path} and {other} disagree: {what} {index} is {one!r} in the first and {two!r} in the second",
                fix="delete the file that is wrong, or copy both again",
            )


def _lines(path: Path) -> Mapping[int, str]:
    pieces = [vocab_txt.without_end(line) for line in read_lines(path, AGAIN)]
    twins = vocab_txt.twins(pieces)
    return {index: "" if index in twins else piece for index, piece in enumerate(pieces)}


def _words(path: Path) -> Mapping[int, str]:
    return {index: line.strip() for index, line in enumerate(read_lines(path, AGAIN))}


def _ids(path: Path) -> Mapping[int, str]:
    return {index: piece for piece, index in read_json(path, AGAIN).items() if isinstance(index, int)}


def _pieces(path: Path) -> Mapping[int, str]:
    with user_errors(path, AGAIN):
        content = path.read_bytes()
    return dict(enumerate(piece for piece, _ in parsed(path, content).pieces))


# {type of model: (original file of its pieces, function that reads {id: piece} from it)}
PIECES: Mapping[str, tuple[str, Callable[[Path], Mapping[int, str]]]] = {
    "WordPiece": ("vocab.txt", _lines),
    "BPE": ("vocab.json", _ids),
    "Unigram": ("spiece.model", _pieces),
    "WordLevel": ("vocab.txt", _words),
}
