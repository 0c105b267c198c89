"""A blend as plain values and tensors: the same comes back, and nothing else is accepted."""

import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regaug.data.scaling import Scaler
from regaug.ensemble import Component, Ensemble
from regaug.ensemble.component import Predictors
from regaug.ensemble.contents import Contents
from regaug.ensemble.intervals import Calibration
from regaug.ensemble.members import Members
from regaug.ensemble.preparation import Preparation
from regaug.ensemble.scale import Bounds, TargetScale
from regaug.exceptions import DataError, RegaugError
from regaug.metrics import evaluate
from regaug.models.mlp import NetForm
from regaug.training import Settings
from regaug.training.baselines import Rows, boosting, fit_predictor, trees

D, M = 3, 2
RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.standard_normal((30, D)))
Y = torch.stack([X[:, 0].exp(), 5.0 + X[:, 1].abs()], dim=1)
SHARES = {"erm": 0.4, "mixup": 0.2, "ridge": 0.1, "boosting": 0.1, "trees": 0.1, "gp": 0.1}


@pytest.fixture(scope="module")
def blend():
    """A model with nets of two forms and every baseline, on two scales."""
    plain, log = TargetScale.fit(Y), TargetScale.fit(Y, log=True)
    components = []
    for method, scale, form in (
        ("erm", plain, NetForm(D, M, (4, 3))),
        ("mixup", log, NetForm(D, M, (5,), periodic=(0, 2), frequencies=2, linear=True)),
    ):
        states = [form.make(seed=seed).state_dict() for seed in range(2)]
        weights = {name: torch.stack([own[name] for own in states]) for name in states[0]}
        nets = Members(form, weights, scale)
        components.append(Component(method, SHARES[method], nets, Settings()))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("TREES", 4), ("FEWEST_TREES", 2)):
            patch.setattr(trees, name, value)
        for name in ("FIRST", "ROUND", "MOST_TREES"):
            patch.setattr(boosting, name, 3)
        rows = Rows(X[:20], plain.transform(Y[:20])), Rows(X[20:], plain.transform(Y[20:]))
        for name in ("ridge", "boosting", "trees", "gp"):
            fitted = tuple(fit_predictor(name, *rows).predictor for _ in range(2))
            components.append(Component(name, SHARES[name], Predictors(fitted, plain)))
    return Ensemble(
        targets=("a", "b"),
        method="auto",
        preparation=Preparation(None, Scaler.fit(X)),
        components=tuple(components),
        bounds=Bounds.fit(Y, log=True),
        scale=log,
        calibration=Calibration(torch.ones(M).double(), torch.ones(9, M).double()),
        held_out=evaluate(Y, Y),
    )


def test_the_shares_are_said(blend):
    assert blend.shares == pytest.approx(SHARES)
    assert list(blend.shares)[:2] == ["erm", "mixup"]
    assert str(blend) == (
        "auto: nets 60 % (erm 40 %, mixup 20 %), ridge 10 %, boosting 10 %, trees 10 %, gp 10 %; "
        "12 models"
    )
    assert len(blend) == 12
    assert blend.settings is None


def test_a_model_of_one_component_says_what_it_is(blend):
    nets, _, ridge = blend.components[:3]
    assert str(replace(blend, method="erm", components=(nets,))) == "erm: 2 nets"
    assert str(replace(blend, method="ridge", components=(ridge,))) == "ridge: 2 models"
    alone = replace(ridge, share=1.0)
    assert str(replace(blend, components=(alone,))) == "auto: ridge 100 %; 2 models"


def test_the_mean_and_the_spread_are_weighted_and_every_model_is_clamped(blend):
    x = blend.preparation(X)
    values, weights = [], []
    for own in blend.components:
        for single in own.models.scale.inverse(own.models(x)):
            values.append(single.clamp(blend.bounds.low, blend.bounds.high))
            weights.append(SHARES[own.method] / 2)
    values, weights = torch.stack(values), torch.tensor(weights).double().reshape(-1, 1, 1)
    mean = (weights * values).sum(dim=0)
    prediction = blend.predict(X, interval=0.9)
    torch.testing.assert_close(prediction.mean, mean)
    spread = (weights * (values - mean) ** 2).sum(dim=0).sqrt()
    torch.testing.assert_close(prediction.spread, spread)
    assert (prediction.low < mean).all()
    assert (prediction.high > mean).all()
    assert (prediction.low > 0).all()


def test_a_row_is_predicted_alike_whatever_stands_beside_it(blend, monkeypatch):
    together = blend.predict(X).mean
    torch.testing.assert_close(blend.predict(X[4:5]).mean, together[4:5], rtol=1e-12, atol=1e-12)
    monkeypatch.setattr("regaug.ensemble.component._BLOCK", 7)
    torch.testing.assert_close(blend.predict(X).mean, together, rtol=1e-12, atol=1e-12)
    assert blend.predict(X[:0], interval=0.9).low.shape == (0, M)


def test_numbers_beyond_float32_do_no_harm(blend):
    assert blend.predict(np.full((1, D), 1e300)).mean.isfinite().all()


def test_it_comes_back(blend, tmp_path):
    blend.save(tmp_path / "model")
    back = Ensemble.load(tmp_path / "model")
    mine, other = (own.predict(X, interval=0.9) for own in (blend, back))
    for part in ("mean", "spread", "low", "high"):
        assert torch.equal(getattr(mine, part), getattr(other, part))
    assert str(back) == str(blend)


@pytest.mark.parametrize(
    "shares", [(0.5, 0.6), (0.5, 0.4), (1.5, -0.5), (1.0, 0.0), (float("nan"), 0.5)]
)
def test_shares_that_are_none_are_refused(blend, shares):
    state = blend.to_state()
    state["components"] = state["components"][:2]
    for own, share in zip(state["components"], shares, strict=True):
        own["share"] = share
    with pytest.raises(DataError, match=r"`(share|components)` must"):
        Contents.from_state(state)


def test_logarithms_of_what_may_be_negative_are_refused(blend):
    state = blend.to_state()
    state["low"] = -state["low"]
    with pytest.raises(DataError, match="`low` must be positive"):
        Contents.from_state(state)


def test_a_component_of_something_else_cannot_be_stored(blend):
    stranger = SimpleNamespace(scale=blend.components[0].models.scale)
    own = replace(blend.components[0], models=stranger)
    with pytest.raises(TypeError, match="a component of SimpleNamespace cannot be stored"):
        replace(blend, components=(own,)).to_state()


def change_tensor(draw, tensor):
    """Return a tensor like another with a wild number in it, or of another shape or type."""
    if tensor.numel() and draw.random() < 0.6:
        flat = tensor.flatten().clone()
        wild = (0, 1, -1, 7, 2**31 - 1, -(2**31))
        if tensor.is_floating_point():
            wild = (*wild, torch.nan, torch.inf, 1e308, 5e-324)
        flat[draw.randrange(len(flat))] = torch.tensor(draw.choice(wild), dtype=torch.float64)
        return flat.reshape(tensor.shape)
    shapes = (
        lambda own: own[:-1],
        lambda own: own[:0],
        lambda own: torch.cat([own, own]),
        lambda own: own.flip(0),
        lambda own: own.reshape(-1),
        lambda own: own[None],
        lambda own: own.float() if own.dtype == torch.float64 else own.double(),
        lambda own: own.bool(),
    )
    return draw.choice(shapes)(tensor)


def change(draw, value):
    """Return a nested state with one place of it changed."""
    if isinstance(value, dict) and value and draw.random() < 0.95:
        key = draw.choice(list(value))
        if draw.random() < 0.05:
            return {name: own for name, own in value.items() if name != key}
        if draw.random() < 0.03:
            return {**value, draw.choice(["more", 7, None]): value[key]}
        return {**value, key: change(draw, value[key])}
    if isinstance(value, list) and value and draw.random() < 0.95:
        place = draw.randrange(len(value))
        return [*value[:place], change(draw, value[place]), *value[place + 1 :]]
    if isinstance(value, torch.Tensor) and value.ndim and draw.random() < 0.95:
        return change_tensor(draw, value)
    if type(value) is float and draw.random() < 0.7:
        return draw.choice([0.0, -1.0, 1e308, 5e-324, float("nan"), float("inf"), value / 2])
    if type(value) is int and draw.random() < 0.7:
        return draw.choice([-1, 0, value + 1, 10**9, 2**63])
    return draw.choice([None, 0, 1.5, "x", [], {}, [value], {"a": value}, True, value])


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_models_are_refused_in_words_or_predict(blend, count):
    draw, n_read, words = random.Random(0), 0, []
    new = torch.cat([X[:3], 1e30 * X[:1]])
    for _ in range(count):
        state = blend.to_state()
        for _ in range(draw.choice([1, 1, 2])):
            state = change(draw, state) or {}
        try:
            model = Ensemble(**vars(Contents.from_state(state if isinstance(state, dict) else {})))
            prediction = model.predict(new[:, : len(model.preparation.scaler.mean)], interval=0.5)
        except RegaugError as error:
            words.append(str(error))
        else:
            assert prediction.mean.shape == (len(new), len(model.targets))
            n_read += 1
    assert n_read > count // 20
    assert len(words) > count // 2
    assert all(len(word) < 500 for word in words)
