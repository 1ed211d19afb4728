"""Whether the files of one folder are one vocabulary: tokenizer.json, which is read, and the authors' own files beside it."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from jaxenc.data.files import read_json, read_lines, user_errors
from jaxenc.data.tokenizers.checks import AGAIN
from jaxenc.data.tokenizers.spiece import parsed
from jaxenc.data.tokenizers.tokenizer import Tokenizer
from jaxenc.errors import UserError

NOTHING = "nothing"


def check(path: Path, model: str, tool: Tokenizer, added: Collection[int]) -> None:
    """Raises UserError where a file beside the tokenizer.json at `path` gives an id another piece, naming both files and the first such id.

    model: the type that the tokenizer.json names. tool: what it opened as. added: ids of its added pieces, which the other file may lack.
    """
    name, read = OTHERS.get(model, ("", _lines))
    other = path.with_name(name)
    if not name or not other.is_file():
        return
    theirs = read(other)
    for index in sorted({*range(tool.vocabulary.ids), *theirs}):
        ours = tool.token(index) if 0 <= index < tool.vocabulary.ids else NOTHING
        piece = theirs.get(index, NOTHING)
        if ours != piece and not (piece == NOTHING and index in added):
            raise UserError(
                f"{path} and {other} disagree: id {index} is {ours!r} in the first and {piece!r} in the second; "
                "delete the file that is wrong, or copy both again"
            )


def _lines(path: Path) -> Mapping[int, str]:
    return dict(enumerate(read_lines(path, AGAIN)))


def _words(path: Path) -> Mapping[int, str]:
    return dict(enumerate(line.strip() for line in read_lines(path, AGAIN)))


def _ids(path: Path) -> Mapping[int, str]:
    return {index: piece for piece, index in read_json(path, AGAIN).items() if isinstance(index, int)}


def _pieces(path: Path) -> Mapping[int, str]:
    with user_errors(path, AGAIN):
        content = path.read_bytes()
    return dict(enumerate(piece for piece, _ in parsed(path, content).pieces))


# {type of a model: (file of the authors, {id: piece} in it)}
OTHERS: Mapping[str, tuple[str, Callable[[Path], Mapping[int, str]]]] = {
    "WordPiece": ("vocab.txt", _lines),
    "BPE": ("vocab.json", _ids),
    "Unigram": ("spiece.model", _pieces),
    "WordLevel": ("vocab.txt", _words),
}
