"""Types as a user sees them: ``mypy --strict`` on a small program.

``make check`` looks at the program with the settings of this project. Here there are none, and
mypy reads torch anew, which takes half a minute.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import regaug

PROGRAM = Path(__file__).with_name("typed_program.py")
SOURCES = Path(regaug.__file__).parents[1]


def check(program: Path, cache: Path, folder: Path) -> str:
    """Return what mypy says of a program, run from elsewhere, with no settings of this project."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--follow-imports=silent",
    ]
    done = subprocess.run(
        [*command, f"--cache-dir={cache}", str(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(SOURCES)},
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def cache(request):
    """Kept between runs: without it the types of torch take half a minute."""
    return request.config.cache.mkdir("mypy-of-a-user")


@pytest.mark.slow
@pytest.mark.serial
def test_a_users_program_has_types(cache, tmp_path):
    assert check(PROGRAM, cache, tmp_path) == "Success: no issues found in 1 source file\n"


@pytest.mark.slow
@pytest.mark.serial
def test_a_call_is_a_pair_of_tensors_and_not_anything(cache, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, regaug\n"
        "x, y = torch.randn(8, 3), torch.randn(8)\n"
        "reveal_type(regaug.FOMA()(x, y))\n"
        "reveal_type(regaug.Compose(regaug.Mixup())({'a': x}, y)[0])\n"
        "reveal_type(regaug.Mixup().at(torch.nn.Linear(3, 1), 'input')(x, y)[1])\n"
    )
    revealed = re.findall(r'Revealed type is "(.*)"', check(program, cache, tmp_path))
    tensor = "torch._tensor.Tensor"
    assert revealed == [f"tuple[{tensor}, {tensor}]", f"dict[str, {tensor}]", tensor]
