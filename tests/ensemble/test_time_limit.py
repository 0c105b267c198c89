"""A fit that may take so long only: what is finished is the model, and it says what is missing."""

from dataclasses import replace

import pytest
import torch

from regaug.data import load
from regaug.ensemble import Ensemble, blend, entry, fit
from regaug.ensemble.blend import Amounts
from regaug.exceptions import ArgumentError
from regaug.training import recipe
from regaug.training.stacked import many

AT_ONCE = 1e-9  # minutes
X = [[0.2, -0.4]]


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    usual = recipe.default_recipe
    for module in (recipe, entry):
        monkeypatch.setattr(module, "default_recipe", lambda rows: replace(usual(rows), epochs=5))
    monkeypatch.setattr(Amounts, "of", lambda rows, **quick: Amounts(3, 2, 1))
    monkeypatch.setattr(blend, "METHODS", ("mixup", "c-mixup"))
    monkeypatch.setattr(blend, "BASELINES", ("ridge", "gp"))


@pytest.fixture(scope="module")
def data():
    return load("synthetic-paraboloid", n=60)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until somebody moves it."""

    class Clock:
        now = 1e9

    monkeypatch.setattr("time.time", lambda: Clock.now)
    return Clock


def test_a_blend_has_one_candidate_at_least(data):
    model = fit(data, max_minutes=AT_ONCE)
    assert model.shares == {"ridge": 1.0}
    (note,) = model.notes
    assert note.startswith("The time was up before all was tried; left out: ")
    for name in ("erm", "gp", "mixup", "c-mixup"):
        assert name in note
    assert model.predict(X).mean.isfinite().all()


def test_nets_without_a_baseline_end_where_they_are(data):
    model = fit(data, method="nets", max_minutes=AT_ONCE)
    assert model.shares == {"erm": 1.0}
    assert any("trained to the end: erm" in note for note in model.notes)
    assert any("left out: mixup, c-mixup" in note for note in model.notes)


def test_what_is_finished_is_blended(data, clock):
    def move(event):
        if event.done == 12:  # two recipes and two baselines on three folds: all but the methods
            clock.now += 3600.0

    model = fit(data, max_minutes=1, progress=move)
    assert model.notes == ("The time was up before all was tried; left out: mixup, c-mixup.",)
    assert model.shares.keys() <= {"erm", "ridge", "gp"}


def test_time_enough_gives_the_same_model(data):
    for method in ("auto", "mixup"):
        plain, limited = (fit(data, method=method, max_minutes=most) for most in (None, 60.0))
        assert limited.notes == ()
        assert limited.shares == plain.shares
        assert torch.equal(limited.predict(X).mean, plain.predict(X).mean)


def test_the_nets_of_a_method_end_with_the_epoch_that_is_under_way(data, clock):
    def move(event):
        clock.now += 40.0 if event.done == 2 else 0.0

    model = fit(data, method="mixup", members=3, max_minutes=0.5, progress=move)
    assert len(model) == 3
    (note,) = model.notes
    assert note.endswith("3 of at most 5 epochs.")


def test_nets_that_have_not_begun_are_left_out(data, clock, monkeypatch):
    monkeypatch.setattr("regaug.ensemble.members.most_runs", lambda batch_size: 2)

    def move(event):
        clock.now += 40.0 if event.done == 2 else 0.0

    model = fit(data, method="erm", members=5, max_minutes=0.5, progress=move)
    assert len(model) == 2
    assert "2 of 5 nets" in model.notes[0]


def test_what_was_left_out_is_kept_with_the_model(data, tmp_path):
    model = fit(data, max_minutes=AT_ONCE)
    model.save(tmp_path / "model")
    assert Ensemble.load(tmp_path / "model").notes == model.notes


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), "long"])
def test_a_time_must_be_positive(data, minutes):
    with pytest.raises((ArgumentError, TypeError), match="`max_minutes` must be"):
        fit(data, method="ridge", max_minutes=minutes)


def test_the_epochs_of_a_method_are_told_with_the_time_left(data):
    seen = []
    fit(data, method="mixup", members=2, progress=seen.append)
    assert {(event.total, event.unit) for event in seen} == {(5, "epoch")}
    assert [event.done for event in seen] == [0, 1, 2, 3, 4, 5]
    assert seen[0].seconds_left > 0
    assert seen[0].words == ""
    assert seen[2].words.startswith("mixup, about ")
    assert seen[-1].seconds_left == 0.0


def test_a_stack_is_told_after_every_epoch(data):
    from regaug.data import standardize
    from regaug.training import Settings

    calls = []
    settings = [Settings(epochs=3, seed=seed) for seed in range(2)]
    split = standardize(data.split())
    found = many.fit_many(split, "erm", settings, tell=lambda: calls.append(1), until=0.0)
    assert [result.ending for result in found] == ["stopped", "stopped"]
    assert len(calls) == 1
    assert all(result.best_epoch == 1 for result in found)
