"""The time that the names of regaug, and its help, take to be there."""

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.timing import Row, interleaved


def measure() -> Iterator[Row]:
    def run(*words: str) -> None:
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)

    plain, ours = interleaved(
        [
            lambda: run("-c", "import torch, sklearn"),
            # All of them: the package itself imports none before it is asked for.
            lambda: run("-c", "from regaug import *"),
        ],
        5,
    )
    yield Row("import of all names, against torch, sklearn", plain, ours, faster=False, budget=1.3)
    plain, ours = interleaved(
        [lambda: run("-c", "import torch"), lambda: run("-m", "regaug", "--help")], 5
    )
    yield Row("regaug --help, against importing torch", plain, ours, faster=False, budget=0.5)
