"""Runs a build under Apache Beam: its workers read the text and make keys and pieces, with the functions of a build on one machine.

All workers and the command see one file system: pieces are files in the folder of the unfinished build, and the command itself makes
shards of them. Groups with finished pieces are skipped, so restarting a failed pipeline is cheap.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxenc.data import duplicates, groups, pieces, unfinished
from jaxenc.data.duplicates import Duplicates, Index
from jaxenc.data.groups import Group, Text
from jaxenc.data.pieces import Work
from jaxenc.data.readers import Counts, Reading, Source, progress_of
from jaxenc.data.unfinished import Unfinished
from jaxenc.errors import UserError
from jaxenc.files import write_bytes


def run(text: Text, build: Unfinished, work: Work, rule: Duplicates, characters: int, options: Sequence[str]) -> Counts:
    """Makes the pieces of all groups, in the folder of `build`; returns what the readers changed.

    characters: of a group; options: of the pipeline, as Beam's command line takes them.
    Raises UserError where Apache Beam is not installed, and for options that it does not know.
    """
    dropped: dict[str, tuple[int, ...]] = {}
    if rule.kind:
        _over_groups(text, build.pieces, characters, options, functools.partial(_keys, folder=build.pieces, rule=rule))
        index = Index(rule)
        for path in sorted(build.pieces.glob("*.keys")):
            name = path.name.partition(".")[0]
            if found := index.dropped(duplicates.load_keys(build.pieces, name)):
                dropped[name] = found
    _over_groups(text, build.pieces, characters, options, functools.partial(_pieces, work=work, last=build.last, dropped=dropped))
    read = [json.loads(path.read_bytes()) for path in sorted(build.pieces.glob("*.counts.json"))]
    return sum((Counts(**one) for one in read), Counts())


def _over_groups(text: Text, folder: Path, characters: int, options: Sequence[str], call: Callable[[Group], None]) -> None:
    """Runs a pipeline that calls `call` with every group."""
    beam = _library()
    try:
        parsed = beam.options.pipeline_options.PipelineOptions(list(options), save_main_session=False)
        with beam.Pipeline(options=parsed) as pipeline:
            _ = (
                pipeline
                | "parts" >> beam.Create(list(enumerate(text.parts)))
                | "spread parts" >> beam.Reshuffle()
                | "read" >> beam.FlatMap(functools.partial(_groups_of, reading=text.reading, folder=folder, characters=characters))
                | "spread groups" >> beam.Reshuffle()
                | "make" >> beam.Map(call)
            )
    except SystemExit as error:
        raise UserError(
            "Apache Beam refuses them", f"--beam-options {' '.join(options)}", "fix the options; Beam's own message is above"
        ) from error


def _library() -> Any:
    try:
        import apache_beam
    except ImportError as error:
        raise UserError("needs Apache Beam", "--runner beam", 'install it with `pip install "jaxenc[beam]"`') from error
    return apache_beam


def _groups_of(item: tuple[int, Sequence[Source]], reading: Reading, folder: Path, characters: int) -> Iterator[Group]:
    """The groups of one part. After the last one the counts of its readers are written to a file."""
    number, part = item
    counts = Counts()
    yield from groups.groups(groups.of_part(part, reading, counts, progress_of(part)), characters, number)
    write_bytes(folder / f"{number:06d}.counts.json", json.dumps(dataclasses.asdict(counts)).encode())


def _keys(group: Group, folder: Path, rule: Duplicates) -> None:
    if duplicates.load_keys(folder, group.name) is None:
        duplicates.make_keys(folder, group, rule)


def _pieces(group: Group, work: Work, last: Mapping[str, str], dropped: Mapping[str, tuple[int, ...]]) -> None:
    if unfinished.found(Path(work.folder), last, group.name) is None:
        pieces.make(work, group, dropped.get(group.name, ()))
