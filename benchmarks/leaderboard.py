"""The study that the README shows: ``make demo``, run as it is and kept with the time it took.

    python -m benchmarks.leaderboard      # writes benchmarks/results/leaderboard.json

It runs the command in a process of its own and an empty folder. ``make tables`` puts it into the
README.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.__main__ import machine

FILE = Path(__file__).parent / "results" / "leaderboard.json"
COMMAND = ("regaug", "compare", "--quick")
# What is kept of a row.
SHOWN = ("name", "is_baseline", "is_combined", "tier", "mean", "change", "change_low")
SHOWN += ("change_high", "p_holm")


def measure() -> dict[str, Any]:
    """Run the command; return its leaderboard, what it means, and how long it took."""
    busy = os.getloadavg()[0] > 0.5  # other programs were running
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        words = [sys.executable, "-m", *COMMAND, "--json", "--out", folder]
        printed = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout
        seconds = time.perf_counter() - start
    (found,) = json.loads(printed)
    return {
        "machine": machine() | {"command": "python -m benchmarks.leaderboard"},
        "command": " ".join(COMMAND),
        "seconds": round(seconds, 1),
        "busy": busy,
        "data": found["configuration"]["problem"],
        "rows": found["configuration"]["rows"],
        "splits": found["configuration"]["splits"],
        "metric": found["configuration"]["metric"],
        "leaderboard": [{name: row[name] for name in SHOWN} for row in found["rows"]],
        "verdict": found["verdict"],
        "checks": [f"{own['code']}: {own['text']}" for own in found["checks"]],
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(measure(), indent=1) + "\n")
