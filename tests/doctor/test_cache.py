"""The folder of compiled programs."""

import dataclasses
from pathlib import Path

import pytest

from jaxenc.doctor import cache
from jaxenc.doctor.cache import Cache
from jaxenc.doctor.probe import Probe
from jaxenc.findings import OK, WARNING
from jaxenc.processes.compiled import FOLDER, SIZE

GOOD, SEEN = Cache("a", "/cache", 2 * 10**9, 10**6, 3, 0, False), Probe("/cache", "", True, 1)
BLIND = dataclasses.replace(SEEN, seen=False)


def said(facts: list[Cache], probes: list[Probe]) -> list[str]:
    return [one.line for one in cache.judge(facts, probes)]


def test_a_sound_cache_is_one_line() -> None:
    assert said([GOOD], [SEEN]) == ["ok       compilation cache: /cache: 3 programs, 1.0 MB, 2.0 GB at most"]
    assert said([GOOD, GOOD], [SEEN, SEEN])[0].endswith("one folder for 2 processes")


@pytest.mark.parametrize(
    "facts, probe, words",
    [
        (dataclasses.replace(GOOD, folder=""), SEEN, "there is none: every start compiles again"),
        (GOOD, dataclasses.replace(SEEN, error="Read-only file system"), "Read-only file system"),
        (GOOD, BLIND, "process 1 cannot see them: it compiles again at every start; set JAX_COMPILATION_CACHE_DIR to a folder that all"),
        (dataclasses.replace(GOOD, open=True), SEEN, "what they write is run as code; chmod go-w /cache"),
        (dataclasses.replace(GOOD, bare=2), SEEN, "2 of 3 programs have no time of use"),
        (dataclasses.replace(GOOD, folder="gs://b/c"), SEEN, "holds off no other host; unset JAX_COMPILATION_CACHE_MAX_SIZE"),
    ],
)
def test_what_is_wrong_with_it_is_a_warning(facts: Cache, probe: Probe, words: str) -> None:
    found = cache.judge([facts, facts], [dataclasses.replace(probe, seen=True), probe] if facts.folder else [])
    assert [one.level for one in found] == [WARNING] and words in found[0].line


def test_the_cache_of_this_process(tmp_path: Path) -> None:
    for name in ("one-cache", "one-atime", "two-cache"):
        (tmp_path / name).write_bytes(b"123")
    tmp_path.chmod(0o700)
    given = {FOLDER: str(tmp_path), SIZE: "100"}
    assert cache.gather("a", given) == Cache("a", str(tmp_path), 100, 6, 2, 1, False)
    tmp_path.chmod(0o777)
    assert cache.gather("a", given).open
    assert cache.gather("a", {}).folder == "" and cache.judge([cache.gather("a", {})], [])[0].level == WARNING
    assert cache.gather("a", {FOLDER: "gs://bucket/c"}) == Cache("a", "gs://bucket/c", -1, 0, 0, 0, False)
    assert cache.judge([cache.gather("a", {FOLDER: "memory://c"})], [SEEN])[0].level == OK
