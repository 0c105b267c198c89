"""A small table with everything a user's table has, and a model of it."""

import numpy as np
import pandas as pd
import pytest

from regaug.data import read_table
from regaug.ensemble import Ensemble, fit_ensemble
from regaug.training import Settings


def make_houses(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(30, 200, n).round(1),
            "city": rng.choice(["Oslo", "Rome", "Łódź"], n),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "garden": rng.random(n) < 0.4,
            "street": rng.integers(0, 12, n),
        }
    )
    days = (frame["sold"] - frame["sold"].min()).dt.days
    price = 20 + 3 * frame["size"] + 60 * (frame["city"] == "Rome") + 0.1 * days
    frame["price"] = price + rng.normal(0, 10, n)
    frame["tax"] = 0.1 * frame["size"] + rng.normal(0, 1, n)
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    frame.loc[rng.random(n) < 0.1, "city"] = None
    return frame


@pytest.fixture(scope="session")
def houses() -> pd.DataFrame:
    return make_houses(150, seed=0)


@pytest.fixture(scope="session")
def new_houses() -> pd.DataFrame:
    frame = make_houses(40, seed=1).drop(columns=["price", "tax"])
    frame.loc[3, "city"] = "Paris"  # unseen
    frame.loc[5, "sold"] = pd.NaT
    return frame


@pytest.fixture(scope="session")
def quick() -> Settings:
    return Settings(epochs=6, learning_rate=5e-3)


@pytest.fixture(scope="session")
def model(houses: pd.DataFrame, quick: Settings) -> Ensemble:
    table = read_table(houses, target=["price", "tax"])
    return fit_ensemble(table, settings=quick, members=3, hidden=(16, 8))
