"""Which files hold the examples of a task."""

import dataclasses
import os

from jaxenc import storage
from jaxenc.config import at_least
from jaxenc.data.readers.document import Reading
from jaxenc.errors import UserError

# What is wrong, and the advice, where an encoding is given for a file in a task's own format.
FIXED, CONVERT = "files of this kind are UTF-8 or UTF-16", "leave it out, and convert the file if it is neither"


@dataclasses.dataclass(frozen=True)
class FilesConfig:
    """Which files hold the examples of a task.

    path: the folder of `train`, `dev` and `test` or its URL, a dataset saved by `datasets` of Hugging Face, or `tfds:NAME`. '' = none.
    train: the file of the training examples, or the split of a dataset. `A,B` is both, `A|B` the first that exists, `A|` A or none.
    dev: the same for the examples that the model is evaluated on. '' = none.
    test: the same for the examples that it answers at the end. '' = none.
    train_rows: how many of the first training examples are used; 0 = all.
    dev_rows: the same for `dev`.
    encoding: of files of rows. '' = UTF-8, or what a byte order mark indicates, as always in files of CoNLL and SQuAD.
    broken_rows: how many rows of a file may differ from the first in their number of columns; they are left out of train and dev.
    ragged: whether rows of a table without a header may have more columns than are read, as in the STS benchmark.
    """

    path: str = ""
    train: str = ""
    dev: str = ""
    test: str = ""
    train_rows: int = 0
    dev_rows: int = 0
    encoding: str = ""
    broken_rows: int = 0
    ragged: bool = False

    def __post_init__(self) -> None:
        at_least(0, "data", self, "train_rows", "dev_rows", "broken_rows")
        try:
            Reading(encoding=self.encoding)
        except UserError as error:
            raise UserError(f"data.encoding is {self.encoding!r}: {error.what}", fix=error.fix) from error

    def names(self, split: str) -> list[str]:
        """The files or addresses of a split, `train`, `dev` or `test`, [] for a split without any.

        Of several alternatives, the first whose files all exist, or else the first; with `tfds:`, the first that is not a file name.
        """
        found = [self._listed(alternative) for alternative in getattr(self, split).split("|")]
        if self.path.startswith("tfds:"):
            return next((names for names in found if not any("." in name.removeprefix(self.path) for name in names)), found[0])
        return next((names for names in found if all(map(_exists, names))), found[0])

    def own_format(self, file: str) -> str:
        """`file`, which is in a task's own format and not a text of rows. Raises UserError if `encoding` is set."""
        if self.encoding:
            raise UserError(FIXED, f"data.encoding={self.encoding}, {file}", CONVERT)
        return file

    def _listed(self, alternative: str) -> list[str]:
        listed = [name for name in alternative.split(",") if name]
        return [f"{self.path}:{name}" if self.path.startswith("tfds:") else os.path.join(self.path, name) for name in listed]

    def limit(self, split: str) -> int:
        """How many examples of a split are used, 0 for all."""
        return {"train": self.train_rows, "dev": self.dev_rows}.get(split, 0)


def _exists(name: str) -> bool:
    """Whether there is a file or a folder at a path or a URL."""
    above, _, last = name.rstrip("/").rpartition("/")
    return last in storage.names(above) if storage.is_url(name) else os.path.exists(name)
