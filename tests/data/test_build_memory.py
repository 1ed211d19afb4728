"""R41: the memory of a build does not grow with the text."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEASURED = """
import json, resource, sys
from jaxenc.data.build import build

if __name__ == "__main__":
    build([sys.argv[1]], sys.argv[2], sys.argv[3], 0.01, 2)
    print(json.dumps([resource.getrusage(who).ru_maxrss // 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]))
"""


@pytest.mark.full
def test_memory_is_the_same_for_ten_times_the_text(write_documents, tokenizer: Path, tmp_path: Path) -> None:
    """At most 600 MB in all with two workers; for 40 MB of text a tenth more than for 4 MB, in the process that reads and in the largest of
    the others. One document in each has a million characters."""
    (tmp_path / "measured.py").write_text(MEASURED)
    text, found = write_documents(tmp_path / "once.txt", 4000).read_text(), {}
    long = (text[: 1 << 20].replace("\n\n", "\n") + "\n\n").encode()
    for times in (1, 10):
        with open(tmp_path / "text.txt", "wb") as file:
            file.write(long)
            for _ in range(times):
                file.write(text.encode() + b"\n")
        out = tmp_path / f"out{times}"
        command = [sys.executable, str(tmp_path / "measured.py"), str(tmp_path / "text.txt"), str(tokenizer), str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        found[times] = json.loads(done.stdout)
    assert all(large <= 1.1 * small for small, large in zip(found[1], found[10], strict=True)), found
    assert found[10][0] + 2 * found[10][1] <= 600, found
