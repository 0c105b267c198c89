"""The progress bar: lines in a pipe, a bar on a terminal, silence when it is not asked for."""

import io
import sys

import pytest

from regaug.data import standardize
from regaug.data.datasets.synthetic import make_manifold
from regaug.models import MLP
from regaug.training import Settings, bar, fit
from regaug.training.bar import Bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def advance_all(total, show, done=0):
    with Bar("epoch", total, done, show=show) as shown:
        for number in range(done, total):
            shown.advance(f"rmse {number}")


def test_nothing_is_shown_unless_asked_for(capsys):
    advance_all(3, show=False)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_pipe_gets_a_line_now_and_then_and_the_last_one(capsys, monkeypatch):
    times = iter([0.0, 1.0, 11.0, 11.0, 12.0, 22.5, 22.5, 23.0])
    monkeypatch.setattr(bar.time, "monotonic", lambda: next(times))
    advance_all(5, show=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "epoch 2/5  rmse 1",
        "epoch 4/5  rmse 3",
        "epoch 5/5  rmse 4",
    ]


def test_what_was_done_before_is_counted(capsys):
    advance_all(9, show=True, done=8)
    assert capsys.readouterr().err == "epoch 9/9  rmse 8\n"


def test_a_terminal_gets_a_bar_with_the_current_error(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    advance_all(3, show=True)
    assert "3/3" in terminal.getvalue()
    assert "rmse 2" in terminal.getvalue()


def test_the_bar_is_taken_away_when_the_training_fails(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    shown = Bar("epoch", 3, show=True)
    with pytest.raises(ZeroDivisionError), shown:
        assert shown._progress.live.is_started
        raise ZeroDivisionError
    assert not shown._progress.live.is_started


def test_a_training_shows_its_validation_error(capsys):
    split = standardize(make_manifold("line", n=30).split())
    result = fit(MLP(1, hidden=(4,)), split, "erm", Settings(epochs=2), progress=True)
    expected = f"epoch 2/2  rmse {result.history[-1].validation:.4g}"
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1] == expected
    assert captured.out == ""
    fit(MLP(1, hidden=(4,)), split, "erm", Settings(epochs=2))
    assert capsys.readouterr().err == ""
