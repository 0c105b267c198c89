"""Fitting and calling any of them, on rows in any scale."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError, UnknownNameError
from regaug.training.baselines import PREDICTORS, Rows, boosting, fit_predictor, trees
from regaug.training.baselines.base import best_of, small_seed

NAMES = list(PREDICTORS)


@pytest.fixture(autouse=True)
def _small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "TREES", 10)
        patch.setattr(trees, "FEWEST_TREES", 2)
        patch.setattr(boosting, "FIRST", 5)
        patch.setattr(boosting, "ROUND", 5)
        patch.setattr(boosting, "MOST_TREES", 10)
        yield


def make_rows(n=40, d=3, m=2, seed=0):
    rng = np.random.default_rng(seed)
    x = torch.from_numpy(rng.standard_normal((n, d)))
    return Rows(x, 4.0 + x[:, :1] * torch.arange(1.0, m + 1) + 0.1 * x.sin().sum(1, keepdim=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_predictor_takes_any_floats_and_gives_float64(name):
    rows = make_rows()
    predictor = fit_predictor(name, rows, rows).predictor
    assert predictor.inputs == 3
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        found = predictor(rows.x.to(dtype))
        assert (found.shape, found.dtype) == ((40, 2), torch.float64)
        assert torch.equal(found, predictor(rows.x.to(dtype).double()))
    assert predictor(rows.x[:0]).shape == (0, 2)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_predicted_alone_as_among_others(name):
    rows = make_rows()
    predictor = fit_predictor(name, rows, rows).predictor
    alone = torch.cat([predictor(row) for row in rows.x.split(1)])
    torch.testing.assert_close(alone, predictor(rows.x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_neither_rows_nor_inputs_are_changed(name):
    train, validation = make_rows(seed=0), make_rows(seed=1)
    before = [values.clone() for rows in (train, validation) for values in (rows.x, rows.y)]
    predictor = fit_predictor(name, train, validation).predictor
    first = predictor(validation.x)
    assert torch.equal(predictor(validation.x), first)
    after = [values for rows in (train, validation) for values in (rows.x, rows.y)]
    assert all(map(torch.equal, before, after))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_predictor(name):
    rows = make_rows()
    first, same = (fit_predictor(name, rows, rows, seed=2**40).predictor for _ in range(2))
    assert torch.equal(first(rows.x), same(rows.x))


@pytest.mark.parametrize("name", ["boosting", "trees"])
def test_another_seed_gives_other_trees(name):
    rows = make_rows()
    chosen = {"error": lambda prediction: prediction[0, 0].item()}
    first, other = (fit_predictor(name, rows, rows, seed=s, **chosen).predictor for s in (0, 1))
    assert not torch.equal(first(rows.x), other(rows.x))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8)
@given(st.integers(1, 25), st.integers(1, 5), st.integers(1, 2), st.integers(0, 99))
def test_any_few_rows_will_do(name, n, d, m, seed):
    train, validation = make_rows(n, d, m, seed), make_rows(1, d, m, seed + 1)
    found = fit_predictor(name, train, validation).predictor(validation.x)
    assert bool(found.isfinite().all())


@pytest.mark.parametrize("name", ["ridge", "boosting", "trees", "gp"])
def test_what_has_the_smallest_error_is_chosen(name):
    train, validation = make_rows(seed=0), make_rows(seed=1)
    seen = []

    def error(prediction):
        seen.append(prediction.clone())
        return -float(len(seen))  # the later, the better

    fitted = fit_predictor(name, train, validation, error=error)
    last = seen[-1]
    if name == "trees":  # more of the same are grown after the choice
        assert (fitted.chosen["leaf"], fitted.chosen["columns"]) == trees.CANDIDATES[-1]
    else:
        torch.testing.assert_close(fitted.predictor(validation.x), last)


def test_the_first_of_equals_is_the_best():
    errors = iter([2.0, 1.0, 1.0, float("inf")])
    assert best_of([torch.zeros(1)] * 4, lambda _: next(errors)) == (1, 1.0)


def test_seeds_become_small_and_stay_different():
    seeds = {small_seed(seed) for seed in [*range(100), 2**32, 2**61]}
    assert len(seeds) == 102
    assert max(seeds) < 2**32


def test_wrong_rows_are_refused():
    x, y = torch.zeros(4, 2), torch.zeros(4, 1)
    with pytest.raises(ArgumentError, match=r"`x` and `y` must be .* got \(4, 2\) and \(3, 1\)"):
        Rows(x, y[:3])
    with pytest.raises(ArgumentError, match="`x` and `y` must not be empty"):
        Rows(x[:0], y[:0])
    with pytest.raises(ArgumentError, match=r"`x` must be \(n, d\), got shape \(4, 2, 1\)"):
        Rows(x[..., None], y)
    with pytest.raises(ArgumentError, match=r"`y` must be \(n, m\), got shape \(4,\)"):
        Rows(x, y[:, 0])
    with pytest.raises(NonFiniteError, match="`y` must be finite"):
        Rows(x, y.fill_(torch.nan))
    with pytest.raises(ArgumentTypeError, match="`x` must be a torch.Tensor"):
        Rows(x.numpy(), y)


def test_wrong_arguments_are_refused():
    rows = make_rows()
    with pytest.raises(UnknownNameError, match="Did you mean 'trees'"):
        fit_predictor("tree", rows, rows)
    with pytest.raises(
        ArgumentError, match=r"equal numbers of columns.* got \(3, 2\) and \(2, 2\)"
    ):
        fit_predictor("mean", rows, make_rows(d=2))
    with pytest.raises(ArgumentError, match="`seed`"):
        fit_predictor("mean", rows, rows, seed=-1)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_inputs_are_refused(name):
    rows = make_rows()
    predictor = fit_predictor(name, rows, rows).predictor
    with pytest.raises(ArgumentError, match=r"`x` must be \(n, 3\).* got shape \(40, 2\)"):
        predictor(rows.x[:, :2])
    with pytest.raises(NonFiniteError, match="`x` must be finite"):
        predictor(torch.full((1, 3), torch.nan))
    with pytest.raises(ArgumentTypeError, match="`x` must hold floating-point"):
        predictor(torch.zeros(1, 3, dtype=torch.int64))
