"""New rows where targets are rare: who is rare, who is near, and what a table gets."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression

from regaug import _random
from regaug.augment.rare_rows import RareRows
from regaug.data import read_table
from regaug.data.tabular.generation import generate
from regaug.exceptions import ArgumentError, UnknownNameError
from regaug.functional import relevance
from regaug.integrations.sklearn import AugmentingSampler
from regaug.studies.compare import compare

FOCUSES = (None, "high", "low", "both")


def make_rows(n=200, d=3, targets=1, seed=0):
    generator = _random.make_generator(seed)
    x = torch.randn(n, d, generator=generator, dtype=torch.float64)
    y = torch.randn(n, targets, generator=generator, dtype=torch.float64).exp()
    return x, (y - y.mean(dim=0)) / y.std(dim=0)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    size = rng.lognormal(size=300)
    return pd.DataFrame(
        {
            "size": size,
            "rooms": rng.integers(1, 9, 300),
            "city": rng.choice(["Oslo", "Rome", "Lima"], 300),
            "new": rng.random(300) < 0.5,
            "price": size**2 + rng.normal(size=300),
        }
    )


def slow_neighbors(x, y, rare, ends, neighbors):
    """All distances between the rare rows of an end, sorted."""
    found, reach = {}, {}
    for i in rare:
        others = sorted(
            (float((x[i] - x[j]).square().sum().sqrt()), j)
            for j in rare
            if j != i and ends[j] == ends[i]
        )[:neighbors]
        found[i] = {j for _, j in others}
        distances = [distance for distance, _ in others]
        # Of an even number the lower of the two in the middle, as torch.median has it.
        reach[i] = sorted(distances)[(len(distances) - 1) // 2] / 2 if distances else np.inf
    return found, reach


def slow_ends(y, focus):
    """For one target: the end at which each row is rare, 0 for low and 1 for high."""
    n = len(y)
    if focus is None:
        low, high = (own.flatten().tolist() for own in relevance(y))
        return [0 if a >= 0.8 else 1 if b >= 0.8 else -1 for a, b in zip(low, high, strict=True)]
    ranked, size = sorted(range(n), key=lambda i: float(y[i])), -(-n // 10)
    ends = [-1] * n
    for i in ranked[:size] if focus in ("low", "both") else ():
        ends[i] = 0
    for i in ranked[-size:] if focus in ("high", "both") else ():
        ends[i] = 1
    return ends


@pytest.mark.parametrize("focus", FOCUSES)
@pytest.mark.parametrize("neighbors", [1, 4, 5])
def test_rare_rows_and_their_neighbors_are_those_of_all_distances(focus, neighbors):
    x, y = make_rows()
    known = RareRows.of(x, y, neighbors=neighbors, focus=focus)
    ends = slow_ends(y, focus)
    rare = [i for i in range(len(y)) if ends[i] >= 0]
    assert known.rare.tolist() == rare
    found, reach = slow_neighbors(x, y, rare, ends, neighbors)
    for place, i in enumerate(rare):
        assert {*known.near[place].tolist()} == found[i]
        assert known.reach[place].item() == pytest.approx(reach[i])


@pytest.mark.parametrize("focus", FOCUSES)
def test_every_rare_row_is_used_as_often_give_or_take_one(focus):
    known = RareRows.of(*make_rows(), focus=focus)
    counts = known.draw(5 * len(known.rare) + 2, seed=3).start.bincount()
    assert counts.min() == 5
    assert counts.max() == 6
    one, same, other = (known.draw(50, seed) for seed in (1, 1, 2))
    assert torch.equal(one.u, same.u)
    assert not torch.equal(one.u, other.u)


@pytest.mark.parametrize("focus", FOCUSES)
@pytest.mark.parametrize(
    "y",
    [
        torch.zeros(30, 1),
        torch.arange(30.0)[:, None],  # nothing is rare by the box plot
        torch.cat([torch.zeros(29, 1), torch.full((1, 1), 9.0)]),  # one outlier
        torch.tensor([[1.0], [2.0]]),
        torch.tensor([[1.0]]),
        torch.cat([torch.randn(30, 2), torch.zeros(30, 1)], dim=1),
    ],
)
def test_odd_targets_have_rare_rows_too(y, focus):
    x = torch.randn(len(y), 2, generator=_random.make_generator()).double()
    known = RareRows.of(x, y.double(), focus=focus)
    new_x, new_y = known.make(known.draw(40, seed=0), sigma=0.1)
    assert new_x.shape == (40, 2)
    assert new_y.shape == (40, y.shape[1])
    assert bool(new_x.isfinite().all() and new_y.isfinite().all())


def test_equal_rows_stay_where_they_are():
    x, y = torch.ones(20, 2).double(), torch.arange(20.0)[:, None].double()
    known = RareRows.of(x, y, focus="high")
    assert torch.equal(known.make(known.draw(9, seed=0), sigma=0.5)[0], x[:9])


@pytest.mark.parametrize("focus", FOCUSES)
def test_new_rows_of_a_table_are_rare_ones_and_valid(frame, focus):
    table = read_table(frame, target="price")
    settings = {"focus": focus, "sigma": 0.02}
    new = generate(table, method="smogn", rows=200, seed=1, method_settings=settings)
    assert len(new) == 200
    assert list(new.dtypes) == list(frame.dtypes)
    assert set(new["city"]) <= set(frame["city"])
    assert set(new["rooms"]) <= set(range(1, 9))
    for name in ("size", "price"):
        assert new[name].between(frame[name].min(), frame[name].max()).all()
    low, high = frame["price"].quantile([0.25, 0.75])
    if focus in (None, "high"):  # this target is skewed
        assert (new["price"] > high).mean() > 0.9
    elif focus == "low":
        assert (new["price"] < low + 2.0).mean() > 0.9
    again = generate(table, method="smogn", rows=200, seed=1, method_settings=settings)
    pd.testing.assert_frame_equal(new, again)


def test_new_rows_follow_the_originals_in_fit_resample(frame):
    x, y = frame.drop(columns="price"), frame["price"]
    sampler = AugmentingSampler("smogn", rows=60, method_settings={"focus": "high"}, random_state=0)
    more_x, more_y = sampler.fit_resample(x, y)
    pd.testing.assert_frame_equal(more_x[:300], x)
    assert list(more_x.dtypes) == list(x.dtypes)
    assert set(more_x["city"]) == set(x["city"])
    assert more_y[300:].median() > y.quantile(0.85)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"focus": "top"}, ArgumentError, "`focus` must be one of 'high', 'low', 'both', or"),
        ({"neighbors": 0}, ArgumentError, "`neighbors` must be at least 1, got 0"),
        ({"sigma": -1.0}, ArgumentError, "`sigma` must be at least 0, got -1.0"),
        ({"nieghbors": 3}, UnknownNameError, "Unknown setting 'nieghbors'. Did you mean"),
    ],
)
def test_wrong_settings_are_named(frame, settings, error, message):
    table = read_table(frame, target="price")
    with pytest.raises(error, match=message):
        generate(table, method="smogn", rows=5, method_settings=settings)


def test_a_study_of_a_regressor_tries_them_where_its_metric_looks(frame):
    table = read_table(frame, target="price")
    options = {"methods": ["smogn", "mixup"], "trials": 2, "splits": 2}
    study = compare(
        table,
        model=LinearRegression(),
        metric="tail-rmse",
        focus="high",
        keep_integers=True,
        **options,
    )
    assert study.config.methods == ("no-rows", "smogn", "mixup", "repeats")
    tried = [own.run.settings.method_settings for own in study.records if own.run.method == "smogn"]
    assert {own["focus"] for own in tried} == {"high"}
    assert study.comparison.row("smogn").mean is not None
    assert "smogn, meant for rare targets, changes tail RMSE (high) by" in study.verdict.text


def test_nets_are_given_no_rows(frame):
    with pytest.raises(ArgumentError, match="`methods` must act in a training, got smogn.*`model`"):
        compare(frame, target="price", methods=["smogn"], trials=1, splits=2)
