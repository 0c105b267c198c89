"""What all tests share: Hypothesis settings, Ctrl-C, the folder of real data."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# Torch's first call is slow, and a shared machine has slow moments.
settings.register_profile("default", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("default")

# A shell that starts the tests in the background has them ignore Ctrl-C; some test what it does.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real data files: REGAUG_DATA, or ../shared/data beside the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("REGAUG_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"needs the real data files: set REGAUG_DATA, or put them in {beside}")
    return folder
