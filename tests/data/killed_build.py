"""A build of small groups and shards that kills itself: `python killed_build.py CORPUS TOKENIZER OUT WORKERS AFTER`.

It ends by SIGKILL after so many files got their names, pieces and lists of finished shards; 0: never. Those of workers are not counted.
"""

import os
import signal
import sys
from unittest import mock

from jaxenc.data import build as building
from jaxenc.data import shard_writer

GROUP, SHARD, HELD_OUT = 2000, 3500, 0.1


def main() -> None:
    corpus, tokenizer, out, workers, after = sys.argv[1:]
    left, real = int(after), os.replace

    def replace(source: str, target: str) -> None:
        nonlocal left
        real(source, target)
        left -= str(target).endswith((".npz", "progress.json"))
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    here = {} if int(workers) > 1 else {"pool": lambda count: building.Here()}
    shards = mock.patch.object(shard_writer, "SHARD_TOKENS", SHARD)
    with mock.patch.multiple(building, GROUP_CHARACTERS=GROUP, **here), shards, mock.patch.object(os, "replace", replace):
        building.build([corpus], tokenizer, out, HELD_OUT, int(workers))


if __name__ == "__main__":
    main()
