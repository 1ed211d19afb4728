"""Whether the data folder of each process is complete, and the same in all."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxenc import storage
from jaxenc.data import manifest, staging, tokenizers
from jaxenc.errors import UserError
from jaxenc.files import sha256
from jaxenc.findings import OK, PROBLEM, Finding, by_value, listed, processes

MISSING = "is missing"
AGAIN = "copy them from where the data was built, or build the data again"


@dataclasses.dataclass(frozen=True)
class Data:
    """A folder as one process sees it. error: why it cannot be read at all; wrong: its files that are not as the manifest says, each with
    the reason; fingerprint: of the manifest; tokenizer: whether the one in the folder is the manifest's; verified: of files whose bytes
    were compared, and not their sizes alone."""

    error: str = ""
    wrong: tuple[str, ...] = ()
    fingerprint: str = ""
    tokenizer: bool = True
    files: int = 0
    verified: int = 0


def gather(folder: str, verify: bool) -> Data:
    """Compares the files of a folder with its manifest: their sizes, and with `verify` their checksums. At a URL only their sizes: a run
    compares the checksums as it copies them."""
    if storage.is_url(folder):
        return _gather_at(folder)
    path = Path(folder)
    try:
        facts = manifest.read(path)
    except UserError as error:
        return Data(error=str(error))
    wrong = tuple(f"{name} {reason}" for name, file in facts.files.items() if (reason := _wrong(path / name, file, verify)))
    try:
        same = tokenizers.load(path / "tokenizer").vocabulary == facts.tokenizer
    except UserError:
        same = any(one.startswith("tokenizer/") for one in wrong)  # then its files are named already
    return Data("", wrong, facts.fingerprint, same, len(facts.files), len(facts.files) * verify)


def _gather_at(url: str) -> Data:
    try:
        facts = _manifest_at(url)
        wrong = _wrong_at(storage.folder(url), facts.files)
    except UserError as error:
        return Data(error=str(error))
    return Data("", wrong, facts.fingerprint, files=len(facts.files))


def _manifest_at(url: str) -> manifest.Manifest:
    """The manifest of a data folder at a URL. Raises UserError, which names the URL and not the copy."""
    place = staging.facts(url)
    try:
        return manifest.read(place)
    except UserError as error:
        raise error.renamed(place, url) from error


def _wrong_at(folder: storage.Folder, files: Mapping[str, manifest.File]) -> tuple[str, ...]:
    """The files that are missing at a URL or have another size, each with the reason. Asks for each file: few web servers list a folder."""
    found: dict[str, str] = {}

    def look(name: str) -> None:
        try:
            size = folder.size(name)
        except FileNotFoundError:
            found[name] = MISSING
        else:
            found[name] = "" if size is None else _wrong_size(size, files[name])

    storage.many(look, files)
    return tuple(f"{name} {found[name]}" for name in files if found[name])


def _wrong_size(size: int, file: manifest.File) -> str:
    """What is wrong with a file of `size` bytes, '' for nothing."""
    return f"has {size:,} bytes instead of {file.size:,}" if size != file.size else ""


def _wrong(path: Path, file: manifest.File, verify: bool) -> str:
    try:
        if not path.is_file():
            return MISSING
        if wrong := _wrong_size(path.stat().st_size, file):
            return wrong
        return "has other bytes" if verify and sha256(path) != file.sha256 else ""
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def judge(folder: str, facts: Sequence[Data]) -> list[Finding]:
    """facts: of each process."""
    check, found, several = f"data {folder}", [], len(facts) > 1
    for rank, one in enumerate(facts):
        who = f"in process {rank}: " if several else ""
        if one.error:
            found.append(Finding(PROBLEM, check, f"{who}{one.error}"))
        if one.wrong:
            what = f"{who}{len(one.wrong):,} of {one.files:,} files differ from the manifest: {listed(one.wrong)}"
            found.append(Finding(PROBLEM, check, what, AGAIN))
        if not one.tokenizer:
            what = f"{who}tokenizer/ is not the one that the data was built with (another fingerprint)"
            found.append(Finding(PROBLEM, check, what, "put the old one back, or build the data again"))
    read = {rank: one.fingerprint for rank, one in enumerate(facts) if not one.error}
    if len(set(read.values())) > 1:
        what = f"not the same data in all processes: {by_value([one.fingerprint[:12] for one in facts])}"
        found.append(Finding(PROBLEM, check, what, "copy one folder to all hosts"))
    if found:
        return found
    if storage.is_url(folder):
        how = "sizes (a run compares checksums as it copies them)"
    else:
        how = "sizes and checksums, tokenizer" if facts[0].verified else "sizes (--verify compares checksums), tokenizer"
    return [Finding(OK, check, f"{facts[0].files:,} files, {how}{f', in {processes(read)}' if several else ''}")]
