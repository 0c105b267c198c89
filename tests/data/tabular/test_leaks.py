"""Inputs that give the target away are named; what is to be learned is not."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.data.tabular.leaks import find_leaks
from regaug.data.tabular.table import read_table

RNG = np.random.default_rng(0)
N = 200
A, B, C, D = RNG.uniform(1, 9, (4, N)).round(2)
Y = (5 * A - B**1.3 + RNG.normal(0, 1, N)).round(3)


def found(y=Y, levels=None, **numbers):
    leaks = find_leaks(numbers, levels or {}, {"y": np.asarray(y, dtype=float)})
    return [leak.what for leak in leaks]


@pytest.mark.parametrize(
    ("copy", "text"),
    [
        (Y, "'x' equals the target 'y'"),
        (1.08 * Y + 3, "'x' is, but for its unit, the target 'y'"),
        (-Y, "'x' is, but for its unit, the target 'y'"),
        (Y + RNG.normal(0, 0.1, N), "is nearly a copy of the target 'y'"),
        (np.exp(Y / 3), "'x' has the same order as the target 'y'"),
        (np.exp(-Y / 3), "'x' has the same order as the target 'y'"),
        (np.round(np.exp(Y / 10), 1), "'x' has the same order as the target 'y'"),
        (np.where(np.arange(N) % 9, Y, np.nan), "'x' equals the target 'y'"),
    ],
)
def test_a_copy_is_named(copy, text):
    assert text in " ".join(found(a=A, x=copy, b=B))


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (A + B, "'a' + 'b' is 'y'"),
        (A - B, "'a' - 'b' is 'y'"),
        (A + B - C, "'a' + 'b' - 'c' is 'y'"),
        (100 * (A + B), "100 * ('a' + 'b') is 'y'"),
        ((A + B + C + D) / 4, "the mean of 'a', 'b', 'c', 'd' is 'y'"),
        (A * B, "'a' * 'b' is 'y'"),
        (A / B, "'a' / 'b' is 'y'"),
        (np.round(A + B, 2), "'a' + 'b' is 'y'"),
    ],
)
def test_sums_and_products_are_named(y, text):
    assert found(y, a=A, b=B, c=C, d=D) == [text]


def test_a_sum_is_found_among_many_columns_and_beside_another_sum():
    noise = {f"n{i}": RNG.normal(size=N) for i in range(40)}
    assert found(A + B + C, **noise, a=A, b=B, c=C) == ["'a' + 'b' + 'c' is 'y'"]
    whole = found(A + B + C, a=A, b=B, c=C, part=A + B)
    assert whole in (["'c' + 'part' is 'y'"], ["'a' + 'b' + 'c' is 'y'"])


@pytest.mark.parametrize(
    "y",
    [
        Y,
        1.37 * A - 2.2 * B + 4,  # a law without noise: what is to be learned
        A + B + RNG.normal(0, 0.05, N),
        A + 2 * B,
        A + B + 100,
        np.sin(A) + B,
        A**2 * B,
    ],
)
def test_what_is_to_be_learned_is_no_leak(y):
    assert found(y, a=A, b=B, c=C, d=D) == []


def test_a_trend_over_years_is_no_leak():
    years = np.arange(1990.0, 2024.0)
    assert found(1.03 ** np.arange(34), year=years) == []
    assert found(years * 2 + np.random.default_rng(0).normal(0, 0.1, 34), year=years) == []
    assert found(years * 2, year=years) == ["'year' is, but for its unit, the target 'y'"]


def test_a_category_that_has_one_target_for_each_level_is_named():
    levels = RNG.integers(0, 12, N).astype(float)
    target = RNG.normal(size=12)[levels.astype(int)]
    expected = ["each value of 'model' has one value of the target 'y'"]
    assert found(target, levels={"model": levels}, a=A) == expected
    assert found(target, model=levels, a=A) == expected
    assert found(target + RNG.normal(0, 0.3, N), levels={"model": levels}) == []
    assert found(Y, levels={"row": np.arange(N, dtype=float)}) == []


def test_more_columns_than_rows_prove_nothing():
    rng = np.random.default_rng(0)
    many = {f"x{i}": rng.normal(size=30) for i in range(200)}
    assert found(rng.normal(size=30), **many) == []


@given(st.integers(20, 40), st.integers(1, 8), st.integers(0, 10**6))
def test_noise_has_no_leak(n, d, seed):
    rng = np.random.default_rng(seed)
    columns = {f"x{i}": rng.normal(size=n) for i in range(d)}
    assert found(rng.normal(size=n), **columns) == []


@given(st.integers(0, 10**6), st.floats(1e-6, 1e6))
def test_a_sum_is_found_in_any_unit(seed, unit):
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, 60)) * unit
    assert found(a - b, a=a, b=b, c=c) == ["'a' - 'b' is 'y'"]


def table(**columns):
    frame = pd.DataFrame({"a": A, "b": B, "kind": RNG.choice(["x", "y", "z"], N), "y": Y})
    return read_table(frame.assign(**columns), target="y")


def test_the_summary_names_a_leak_and_the_way_out_first():
    lines = table(**{"y in feet": Y * 3.28}).summary.splitlines()
    assert lines[1] == (
        "Likely leak: 'y in feet' is, but for its unit, the target 'y'. If it is not known before "
        "the target is, leave it out: --drop 'y in feet'."
    )
    assert "leak" not in table().summary


def test_dates_and_texts_may_leak_too():
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.round(Y * 1000), "h")
    assert [leak.columns for leak in table(when=days).leaks] == [("when",)]
    money = [f"${value:,.3f}" for value in Y]
    assert [leak.columns for leak in table(money=money).leaks] == [("money",)]


def test_equal_rows_prove_nothing():
    frame = pd.DataFrame({"a": A[:40].round(1), "y": Y[:40]})
    twice = pd.concat([frame] * 4)
    assert read_table(twice, target="y").leaks == ()


def test_what_was_dropped_does_not_leak():
    frame = pd.DataFrame({"a": A, "copy": Y, "y": Y})
    assert read_table(frame, target="y", drop="copy").leaks == ()


def test_every_target_is_looked_at():
    frame = pd.DataFrame({"a": A, "b": B, "c": C, "y": Y, "z": C * 2})
    leaks = read_table(frame, target=["y", "z"]).leaks
    assert [(leak.columns, leak.target) for leak in leaks] == [(("c",), "z")]
