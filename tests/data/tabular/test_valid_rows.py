"""Every new row of a table is one that there could be, whoever makes it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regaug import methods
from regaug.data import read_table
from regaug.data.tabular.generation import generate

MAKERS = [name for name in methods.names() if methods.get(name).as_maker() is not None]


def make_frame(n=60, seed=0):
    """Categories, whole numbers, a share in [0, 1], a flag, and gaps."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"share": rng.beta(0.4, 0.4, n), "rooms": rng.integers(1, 7, n)})
    frame["city"] = rng.choice(["Oslo", "Rome", "Lima"], n)
    frame["grade"] = rng.choice(["A", "B"], n)
    frame["new"] = rng.random(n) < 0.5
    frame["visits"] = rng.poisson(3.0, n).astype(float)
    frame["price"] = 5 * frame["share"] + frame["rooms"] + (frame["city"] == "Rome")
    frame.loc[rng.random(n) < 0.15, "visits"] = np.nan
    frame.loc[rng.random(n) < 0.15, "city"] = None
    return frame


@pytest.mark.parametrize("categories", ["mix", "whole"])
@pytest.mark.parametrize("method", [*MAKERS, "smogn"])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=4)
def test_every_new_row_is_valid(method, categories, seed):
    known = methods.get_maker(method)
    if categories == "whole" and "categories" not in known.options:
        return
    own = {} if "categories" not in known.options else {"categories": categories}
    frame = make_frame(seed=seed)
    table = read_table(frame, target="price")
    new = generate(table, method=method, rows=40, seed=seed, method_settings=own)
    assert len(new) == 40
    assert new.dtypes.equals(frame[new.columns].dtypes)
    assert set(new["city"].dropna()) <= {"Oslo", "Rome", "Lima"}
    assert set(new["grade"]) <= {"A", "B"}
    assert new["new"].isin([True, False]).all()
    for name in ("share", "rooms", "visits", "price"):
        assert new[name].dropna().between(frame[name].min(), frame[name].max()).all()
    for name in ("rooms", "visits"):
        assert (new[name].dropna() % 1 == 0).all()
    assert not new[["share", "rooms", "grade", "new", "price"]].isna().any(axis=None)
