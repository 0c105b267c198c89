"""New rows for a table."""

import numpy as np
import pandas as pd
import pytest
import torch

from regaug import methods
from regaug.data import load, read_table
from regaug.data.tabular.generation import augment_rows, generate
from regaug.exceptions import ArgumentError, ArgumentTypeError, UnknownNameError

ON_INPUTS = [name for name in methods.names() if methods.get(name).as_maker() is not None]


def make_frame(n=120, seed=0):
    """A table with a column of every kind, gaps, and columns that are no inputs."""
    rng = np.random.default_rng(seed)
    day, hour = rng.integers(0, 900, n), rng.integers(0, 5_000, n)
    frame = pd.DataFrame(
        {
            "id": [f"house {place}" for place in range(n)],
            "row": np.arange(n),
            "size": rng.uniform(30, 200, n),
            "rooms": rng.integers(1, 7, n),
            "city": rng.choice(["Oslo", "Rome", "Łódź"], n),
            "owner": np.where(np.arange(n) % 10 == 0, [f"rare {place}" for place in day], "bank"),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(day, "D"),
            "seen": (pd.Timestamp("2020-01-01 00:30") + pd.to_timedelta(hour, "h")).astype(str),
            "garden": rng.random(n) < 0.4,
            "floors": pd.array(rng.integers(1, 4, n), dtype="Int64"),
            "country": "EU",
            "remark": None,
        }
    )
    frame["price"] = 3 * frame["size"] + 60 * (frame["city"] == "Rome") + 0.1 * day
    frame["visits"] = rng.integers(0, 40, n)
    frame.loc[rng.random(n) < 0.2, ["size", "floors"]] = None
    frame.loc[rng.random(n) < 0.2, "city"] = None
    return frame


@pytest.fixture(scope="module")
def frame():
    return make_frame()


@pytest.fixture(scope="module")
def table(frame):
    return read_table(frame, target=["price", "visits"])


@pytest.mark.parametrize("method", ON_INPUTS)
def test_new_rows_are_rows_of_such_a_table(frame, table, method):
    new = generate(table, method=method, rows=200)
    assert len(new) == 200
    assert list(new.columns) == [name for name in frame.columns if name not in ("id", "row")]
    assert new.dtypes.equals(frame[new.columns].dtypes)
    for name in ("size", "rooms", "sold", "floors", "price", "visits"):
        assert new[name].dropna().between(frame[name].min(), frame[name].max()).all()
    for name in ("city", "owner", "garden", "country"):
        assert set(new[name].dropna()) <= set(frame[name].dropna())
    assert (new["sold"] == new["sold"].dt.normalize()).all()
    assert pd.to_datetime(new["seen"]).dt.strftime("%M:%S").eq("30:00").all()
    assert not new.drop(columns=["size", "floors", "city", "remark"]).isna().any(axis=None)
    assert new["remark"].isna().all()
    read_table(new, target=["price", "visits"])


@pytest.mark.parametrize("method", ON_INPUTS)
def test_new_rows_are_new(frame, table, method):
    new = generate(table, method=method, rows=200)
    assert (~new["price"].isin(frame["price"])).mean() > 0.5


def test_the_relation_between_columns_is_kept():
    rng = np.random.default_rng(0)
    size = rng.uniform(30, 200, 150)
    own = pd.DataFrame({"size": size, "price": 3 * size + 7})
    table = read_table(own, target="price")
    for method in ("mixup", "c-mixup", "cems", "foma"):  # on a line each of them stays there
        new = generate(table, method=method, rows=100)
        np.testing.assert_allclose(new["price"], 3 * new["size"] + 7, rtol=1e-4)


def test_the_seed_decides(table):
    first, again, other = (generate(table, method="cems", rows=50, seed=s) for s in (3, 3, 4))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_the_global_generator_is_neither_read_nor_moved(table):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = generate(table, method="mixup", rows=40)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    pd.testing.assert_frame_equal(generate(table, method="mixup", rows=40), first)


def test_fewer_rows_are_the_first_of_more(table):
    more = generate(table, method="foma-rho", rows=90)
    fewer = generate(table, method="foma-rho", rows=5)
    pd.testing.assert_series_equal(fewer["price"], more["price"].head(5))


def test_the_table_is_left_as_it_was(frame):
    before = frame.copy()
    generate(read_table(frame, target="price"), method="noise", rows=10)
    pd.testing.assert_frame_equal(frame, before)


def test_no_strength_gives_rows_of_the_table(frame, table):
    new = generate(table, method="noise", rows=300, method_settings={"sigma": 0.0})
    own = frame[new.columns].astype({"size": "float32", "price": "float32"})
    # Rare owners are drawn: any of them stands for the others.
    texts = [
        part.drop(columns="owner").astype({"size": "float32", "price": "float32"}).astype(str)
        for part in (new, own)
    ]
    known = set(texts[1].itertuples(index=False, name=None))
    assert set(texts[0].itertuples(index=False, name=None)) <= known


def test_gaps_come_from_gaps(frame, table):
    new = generate(table, method="noise", rows=2000, method_settings={"sigma": 0.01})
    for name in ("size", "city", "floors"):
        assert new[name].isna().mean() == pytest.approx(frame[name].isna().mean(), abs=0.03)
    complete = read_table(frame.dropna(subset=["size", "city", "floors"]), target="price")
    new = generate(complete, method="noise", rows=500, method_settings={"sigma": 1.0})
    assert not new.drop(columns="remark").isna().any(axis=None)


def test_when_to_act_in_training_does_not_matter(table):
    plain = generate(table, method="mixup", rows=40)
    weak = {"p": 0.01, "anneal": 0.1, "append": True}
    pd.testing.assert_frame_equal(
        generate(table, method="mixup", rows=40, method_settings=weak), plain
    )


def test_settings_of_the_method_matter(table):
    calm, wild = (
        generate(table, method="noise", rows=100, method_settings={"sigma": sigma})
        for sigma in (1e-4, 1)
    )
    assert (calm["price"] - wild["price"]).abs().mean() > 10


def test_append_puts_the_tables_own_rows_first(frame, table):
    new = generate(table, method="mixup", rows=30)
    both = generate(table, method="mixup", rows=30, append=True)
    pd.testing.assert_frame_equal(both.head(len(frame)), frame[new.columns])
    pd.testing.assert_frame_equal(both.tail(30).reset_index(drop=True), new)
    read_table(both, target="price")


def test_columns_with_another_task_are_left_out(frame):
    table = read_table(frame, target="price", group="city", time="sold", drop="rooms")
    new = generate(table, method="mixup", rows=10)
    assert set(frame.columns) - set(new.columns) == {"id", "row", "city", "sold", "rooms"}


@pytest.mark.parametrize("method", ON_INPUTS)
def test_twenty_rows_are_enough(method):
    table = read_table(make_frame(20, seed=1), target="price")
    assert len(generate(table, method=method, rows=3)) == 3


def test_a_named_table_has_numbered_columns():
    new = generate(load("synthetic-swiss-roll", n=60), method="cems", rows=4)
    assert list(new.columns) == ["x1", "x2", "x3", "target"]
    assert new.notna().all(axis=None)


def test_a_method_that_makes_no_rows_is_refused(table):
    with pytest.raises(ArgumentError, match="`method` must make new rows, got 'erm'"):
        generate(table, method="erm", rows=5)
    with pytest.raises(ArgumentError, match="`method` must act on inputs, got 'manifold-mixup'"):
        generate(table, method="manifold-mixup", rows=5)
    with pytest.raises(ArgumentError, match="`method` must act on inputs, got 'foma' at 'layer'"):
        generate(table, method="foma", rows=5, method_settings={"place": "layer"})
    with pytest.raises(UnknownNameError, match="Did you mean 'mixup'?"):
        generate(table, method="mixap", rows=5)
    with pytest.raises(UnknownNameError, match="Did you mean 'alpha'?"):
        generate(table, method="mixup", rows=5, method_settings={"alfa": 2})


def test_wrong_arguments_are_named(table):
    with pytest.raises(ArgumentError, match="`rows` must be at least 1, got 0"):
        generate(table, method="mixup", rows=0)
    with pytest.raises(ArgumentError, match="`seed` must be at least 0"):
        generate(table, method="mixup", rows=5, seed=-1)
    with pytest.raises(ArgumentTypeError, match="`data` must be a table"):
        generate(make_frame(), method="mixup", rows=5)


@pytest.mark.parametrize("method", ON_INPUTS)
def test_every_new_row_names_the_row_it_starts_from(method):
    x = torch.randn(50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x, y, sources = augment_rows(x, x[:, :1].exp(), method, {}, 70, seed=0)
    assert x.shape == (70, 3)
    assert y.shape == (70, 1)
    assert sources.shape == (70,)
    assert 0 <= sources.min() <= sources.max() < 50


def test_a_row_that_moves_little_is_near_the_one_it_starts_from():
    x = torch.randn(50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for method, calm in (("noise", {"sigma": 1e-6}), ("cems", {"sigma": 1e-6})):
        new, _, sources = augment_rows(x, x[:, :1], method, calm, 70, seed=0)
        np.testing.assert_allclose(new, x[sources], atol=1e-4)


@pytest.mark.parametrize("targets", ["share", "information", "keep"])
def test_swapped_columns_come_from_rows_of_the_table(targets):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "city": rng.choice(["Oslo", "Rome", "Łódź"], 200),
            "rooms": rng.integers(1, 7, 200),
            "share": rng.beta(0.5, 0.5, 200).round(3),  # between 0 and 1, often at the ends
            "size": np.where(rng.random(200) < 0.2, np.nan, rng.uniform(30, 200, 200).round(1)),
        }
    )
    frame["price"] = frame["rooms"] + 10 * frame["share"] + 5 * (frame["city"] == "Rome")
    table = read_table(frame, target="price")
    own = {"targets": targets}
    new = generate(table, method="feature-mix", rows=1000, method_settings=own)
    for name in ("city", "rooms", "share"):
        assert set(new[name]) <= set(frame[name])
    assert set(new["size"].dropna()) <= set(frame["size"].dropna())
    assert 0.1 < new["size"].isna().mean() < 0.3
    assert new["price"].between(frame["price"].min(), frame["price"].max()).all()
    before = set(frame.drop(columns="price").itertuples(index=False, name=None))
    after = set(new.drop(columns="price").itertuples(index=False, name=None))
    assert len(after - before) > 500
