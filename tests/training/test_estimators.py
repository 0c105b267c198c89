"""Regressors with new rows: what they see, who makes it, and what is refused."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from regaug import methods
from regaug.data import read_table
from regaug.data.base import Part
from regaug.data.datasets.synthetic import make_manifold
from regaug.data.scaling import standardize
from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError, UnknownNameError
from regaug.training import Settings
from regaug.training.estimators import (
    NewRows,
    add_rows,
    call_factory,
    check_estimator,
    fit_estimator,
    is_regressor,
    name_model,
)

MAKERS = [name for name in methods.names() if methods.get(name).as_maker() is not None]


class Spy(RegressorMixin, BaseEstimator):
    """Keeps what it is fitted on, and predicts the mean: of one target, as many packages do."""

    seen: ClassVar[list] = []

    def __init__(self, random_state=None, n_jobs=None, value=0.0):
        self.random_state, self.n_jobs, self.value = random_state, n_jobs, value

    def fit(self, x, y):
        assert y.ndim == 1
        self.seen.append((x.copy(), y.copy(), self.random_state, self.n_jobs))
        self.mean_ = y.mean()
        return self

    def predict(self, x):
        return np.full(len(x), self.mean_)


@pytest.fixture
def spy():
    Spy.seen.clear()
    return Spy()


def make_split(n=100, seed=0):
    return make_manifold("paraboloid", n=n, noise=0.1).split(seed)


def make_table_split(n=120):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(30, 90, n),
            "rooms": rng.integers(1, 7, n),
            "city": rng.choice(["Oslo", "Rome", "Bonn"], n),
        }
    )
    frame["price"] = 3 * frame["size"] + 10 * frame["rooms"] + 20 * (frame["city"] == "Rome")
    return read_table(frame, target="price").split(0)


def settings_of(name, **changes):
    return Settings(method_settings=methods.get_maker(name).settings(**changes), epochs=1)


# What a regressor sees


def test_without_new_rows_it_is_the_plain_regressor():
    split = make_split()
    result = fit_estimator(Ridge(), split)
    x, y = split.train.x.double().numpy(), split.train.y.double().numpy()[:, 0]
    wanted = Ridge().fit(x, y).predict(split.test.x.double().numpy())
    np.testing.assert_allclose(result.predictions["test"][:, 0], wanted)
    assert result.method == "no-rows"
    assert result.scores["test"].rmse == pytest.approx(
        float(np.sqrt(np.mean((wanted - split.test.y.numpy()[:, 0]) ** 2))), rel=1e-5
    )


@pytest.mark.parametrize("name", MAKERS)
def test_the_training_rows_come_first_and_new_ones_below(spy, name):
    split = make_split()
    result = fit_estimator(spy, split, settings_of(name, share=0.4), NewRows(name))
    x, y, *_ = Spy.seen[0]
    n = len(split.train)
    assert (len(x), len(y), result.method) == (n + round(0.4 * n), n + round(0.4 * n), name)
    assert (x[:n] == split.train.x.numpy()).all()
    assert (y[:n] == split.train.y.numpy()[:, 0]).all()
    own = {row.tobytes() for row in x[:n]}
    assert any(row.tobytes() not in own for row in x[n:])
    assert (y.min(), y.max()) == (y[:n].min(), y[:n].max())


@pytest.mark.parametrize("name", MAKERS)
def test_the_seed_decides_the_rows(name):
    split = make_split()

    def rows(seed):
        return add_rows(split, replace(settings_of(name), seed=seed), NewRows(name)).x

    assert torch.equal(rows(0), rows(0))
    assert not torch.equal(rows(0), rows(1))


@pytest.mark.parametrize("name", MAKERS)
def test_categories_stay_categories(name):
    split = make_table_split()
    part = add_rows(split, settings_of(name, share=1.0), NewRows(name))
    new = part.x[len(split.train) :].numpy()
    spans = {column.name: span for column, span in split.encoder.spans()}
    city, rooms = new[:, spans["city"]], new[:, spans["rooms"]]
    assert ((city == 0) | (city == 1)).all()
    assert (city.sum(axis=1) == 1).all()
    whole = add_rows(split, settings_of(name, share=1.0), NewRows(name, keep_integers=True))
    kept = whole.x[len(split.train) :].numpy()[:, spans["rooms"]]
    assert (kept == np.rint(kept)).all()
    if name != "feature-mix":  # whose numbers are those of the table
        assert (rooms != np.rint(rooms)).any()


def test_new_rows_are_made_from_training_rows_alone():
    split = make_split()
    other = replace(
        split,
        validation=replace(split.validation, x=split.validation.x + 100, y=split.validation.y - 9),
        test=replace(split.test, x=split.test.x * 7),
    )
    both = [add_rows(one, settings_of("mixup"), NewRows("mixup")) for one in (split, other)]
    assert torch.equal(both[0].x, both[1].x)
    assert torch.equal(both[0].y, both[1].y)


def test_rows_from_elsewhere_are_drawn_each_once(spy):
    split = make_split()
    width = split.train.x.shape[1]
    foreign = Part(torch.arange(20.0)[:, None].repeat(1, width), torch.ones(20), np.full(20, -1))
    new = NewRows("rows", foreign)
    few = add_rows(split, settings_of("rows", share=0.1), new).x[len(split.train) :, 0]
    assert len(few) == round(0.1 * len(split.train))
    assert len(set(few.tolist())) == len(few)
    every = add_rows(split, settings_of("rows", share=2.0), new).x[len(split.train) :, 0]
    assert sorted(every.tolist()) == list(range(20))
    with pytest.raises(ArgumentError, match="rows from elsewhere"):
        add_rows(split, settings_of("rows"), NewRows("rows"))


def test_repeats_are_training_rows_once_more():
    split = make_split()
    n = len(split.train)
    part = add_rows(split, settings_of("repeats", share=2.0), NewRows("repeats"))
    counts = np.unique(part.x.numpy(), axis=0, return_counts=True)[1]
    assert len(part) == 3 * n
    assert set(counts) == {3}


def test_the_seed_is_the_random_state_also_inside_of_a_pipeline(spy):
    split = make_split()
    fit_estimator(spy, split, Settings(seed=1))
    fit_estimator(make_pipeline(StandardScaler(), spy), split, Settings(seed=1))
    fit_estimator(spy, split, Settings(seed=2))
    states = [state for _, _, state, _ in Spy.seen]
    assert states[0] == states[1] != states[2]
    assert {jobs for *_, jobs in Spy.seen} == {1}
    assert spy.random_state is None  # a copy is fitted
    assert not hasattr(spy, "mean_")


def test_the_same_seed_gives_the_same_predictions_and_another_one_others():
    split, model = make_split(), ExtraTreesRegressor(5)
    one, same, other = (
        fit_estimator(model, split, Settings(seed=seed)).predictions["test"] for seed in (0, 0, 1)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def make_two(split):
    both = {
        name: replace(part, y=torch.cat([part.y, -3 * part.y], dim=1))
        for name, part in split.parts.items()
    }
    return replace(split, **both)


@pytest.mark.parametrize("model", [Spy(), Ridge(), HistGradientBoostingRegressor(max_iter=3)])
def test_several_targets_are_fitted_one_by_one_where_need_be(model):
    split = make_two(make_split())
    result = fit_estimator(model, split, settings_of("mixup"), NewRows("mixup"))
    assert result.predictions["test"].shape == (20, 2)
    ratio = result.predictions["test"][:, 1] / result.predictions["test"][:, 0]
    np.testing.assert_allclose(ratio, -3.0, rtol=1e-4)


def test_a_loss_that_needs_targets_above_zero_has_them():
    split = make_split()
    split = replace(
        split, **{name: replace(part, y=part.y.exp()) for name, part in split.parts.items()}
    )
    model = HistGradientBoostingRegressor(loss="gamma", max_iter=3)
    result = fit_estimator(model, split, settings_of("noise", sigma=0.1), NewRows("noise"))
    assert result.scores["test"].rmse > 0


def test_a_split_with_a_scale_is_scored_in_its_own_units():
    split = make_split()
    plain = fit_estimator(LinearRegression(), split).scores["test"].rmse
    scaled = fit_estimator(LinearRegression(), standardize(split)).scores["test"].rmse
    assert scaled == pytest.approx(plain, rel=1e-3)


@pytest.mark.parametrize("name", ["ridge", "boosting", "trees", "gp"])
def test_a_named_regressor_is_the_baseline_of_that_name(name):
    from regaug.training.baselines import fit_baseline

    split = make_split(60)
    result = fit_estimator(name, split, Settings(seed=3))
    wanted = fit_baseline(name, split, seed=3)
    assert torch.equal(result.predictions["test"], wanted.predictions["test"])
    mixed = fit_estimator(name, split, replace(settings_of("mixup"), seed=3), NewRows("mixup"))
    assert not torch.equal(mixed.predictions["test"], wanted.predictions["test"])
    assert mixed.method == "mixup"


def test_there_are_no_more_rows_than_a_regressor_takes():
    part = add_rows(make_split(), settings_of("mixup", share=2.0), NewRows("mixup"), most=70)
    assert len(part) == 70


# What is refused


class Wrong(Spy):
    def predict(self, x):
        return np.zeros((len(x), 2))


class Endless(Spy):
    def predict(self, x):
        return np.full(len(x), np.inf)


class Failing(Spy):
    def fit(self, x, y):
        raise ValueError("no such rows")


def test_what_cannot_be_fitted_is_refused_in_words():
    split = make_split()
    with pytest.raises(ArgumentTypeError, match="got the classifier LogisticRegression"):
        check_estimator(LogisticRegression(), split)
    with pytest.raises(
        ArgumentError, match=r"predict \(20, 1\) for 20 rows, got \(20, 2\) from Wr"
    ):
        check_estimator(Wrong(), split)
    with pytest.raises(ArgumentError, match=r"Failing, which fails: .*line \d+: ValueError: no s"):
        check_estimator(Failing(), split)
    with pytest.raises(NonFiniteError):
        check_estimator(Endless(), split)
    with pytest.raises(UnknownNameError, match="Did you mean 'trees'"):
        fit_estimator("treees", split)
    assert check_estimator(Spy(), split) > 0


def test_a_named_regressor_that_takes_fewer_rows_is_refused_before_anything_runs():
    split = make_split(2400)
    with pytest.raises(
        ArgumentError, match="'gp': it must have at most 1,000 training rows, got 1"
    ):
        check_estimator("gp", split)
    with pytest.raises(ArgumentError, match="at most 2000 training rows"):
        check_estimator("gp", make_split(4000))
    check_estimator("ridge", split)


def test_a_method_that_makes_no_rows_is_refused():
    with pytest.raises(ArgumentError, match="makes none"):
        methods.get_maker("manifold-mixup")


# What is a regressor, and who makes one


def test_instances_with_fit_and_predict_are_regressors():
    assert is_regressor(Ridge())
    assert is_regressor(make_pipeline(StandardScaler(), Ridge()))
    assert not is_regressor(Ridge)
    assert not is_regressor(nn.Linear(1, 1))
    assert not is_regressor(lambda split: Ridge())
    assert not is_regressor(None)


def test_a_factory_is_told_what_it_asks_for():
    split = object()
    assert call_factory(lambda: 1, split, 3) == 1
    assert call_factory(lambda own: own, split, 3) is split
    assert call_factory(lambda own, seed: (own, seed), split, 3) == (split, 3)
    assert call_factory(lambda seed: seed, split, 3) == 3
    assert call_factory(lambda *own: own, split, 3) == (split,)
    assert call_factory(lambda own=None: own, split, 3) is split
    assert isinstance(call_factory(HistGradientBoostingRegressor, split, 3), BaseEstimator)


def test_the_name_of_a_model_knows_its_parameters():
    assert name_model("trees") == "trees"
    assert name_model(Ridge()) == name_model(Ridge(alpha=1.0)) != name_model(Ridge(alpha=2.0))
    assert name_model(Ridge()).startswith("Ridge-")
    # Two functions that stand elsewhere in the memory have one name.
    assert name_model(Spy(value=make_split)) == name_model(Spy(value=make_split))
