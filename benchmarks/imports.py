"""The time that `import regaug` takes."""

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.timing import Row, interleaved


def measure() -> Iterator[Row]:
    def run(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True)

    plain, ours = interleaved(
        [lambda: run("import torch, sklearn"), lambda: run("import regaug")], 5
    )
    yield Row("import regaug, against torch and sklearn", plain, ours, faster=False, budget=1.3)
