"""Threads of a command sleep while they wait, unless somebody has said otherwise."""

import os

import pytest

from regaug.cli import main as module
from regaug.cli.waiting import wait_asleep


@pytest.mark.parametrize("name", ["OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"])
def test_what_somebody_has_said_stays(name):
    own = {name: "7"}
    wait_asleep(own)
    assert own == {name: "7"}


def test_a_command_says_it_before_torch_is_loaded(monkeypatch):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "app", lambda: 0)
    with pytest.raises(SystemExit):
        module.main()
    assert os.environ.pop("OMP_WAIT_POLICY") == "PASSIVE"
