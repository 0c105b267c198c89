"""The recipe for Accelerate, as it is written in the examples, on one process and on two."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "accelerate_loop.py"
# The processes may write into one line.
LINE = re.compile(
    r"process \d of (\d): (\d+) samples, test error ([\d.]+), sum of weights (-?\d+\.\d+)"
)


def run_with_torchrun(processes):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*torchrun, f"--nproc-per-node={processes}", str(EXAMPLE)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.serial
@pytest.mark.parametrize("start", ["forked", pytest.param("torchrun", marks=pytest.mark.slow)])
def test_two_processes_share_the_batches_and_end_with_the_same_weights(start, run_forked, capfd):
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    if start == "forked":
        # An example that ran in this process has left its state, and a fork would inherit it.
        accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
        run_forked(EXAMPLE)
        written = capfd.readouterr().out
    else:
        written = run_with_torchrun(2)
    lines = [match.groups() for match in LINE.finditer(written)]
    assert len(lines) == 2
    for world, samples, error, _ in lines:
        assert world == "2"
        assert samples == "3200"  # half of the 320 rows in each of 20 epochs
        assert float(error) < 0.3
    assert lines[0][3] == lines[1][3]
