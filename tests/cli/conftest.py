"""A small table with everything a user's table has, as files, and a model of it."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from regaug.cli.main import app
from regaug.metrics import Scores
from regaug.runs.record import RunRecord, Sample
from regaug.runs.run import Run
from regaug.runs.store import Store
from regaug.studies.config import StudyConfig
from regaug.training.settings import Settings

ERRORS = {"erm": 1.0, "c-mixup": 0.9, "mean": 1.6}


def make_houses(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "number": [f"{place:03d}" for place in range(n)],
            "size": rng.uniform(30, 200, n).round(1),
            "rooms": rng.integers(1, 7, n),
            "city": rng.choice(["Oslo", "Rome", "Łódź"], n),
            "sold": (
                pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
            ).strftime("%Y-%m-%d"),
            "garden": rng.random(n) < 0.4,
            "street": rng.integers(0, 12, n),
            "country": "EU",
        }
    )
    price = 20 + 3 * frame["size"] + 60 * (frame["city"] == "Rome") + 9 * frame["rooms"]
    frame["price"] = (price + rng.normal(0, 10, n)).round(2)
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    frame.loc[rng.random(n) < 0.1, "city"] = None
    frame.loc[rng.random(n) < 0.05, "sold"] = None
    return frame


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with houses.csv, and with new.csv, which lacks the price."""
    folder = tmp_path_factory.mktemp("files")
    make_houses(140, seed=0).to_csv(folder / "houses.csv", index=False)
    new = make_houses(30, seed=1).drop(columns="price")
    new.loc[3, "city"] = "Paris"  # unseen
    new.to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def houses(files):
    return files / "houses.csv"


@pytest.fixture(scope="session")
def model(files):
    """The folder of a model that the command has fitted."""
    folder = files / "model"
    arguments = ["fit", files / "houses.csv", "--target", "price", "--method", "erm"]
    arguments += ["--members", 2, "--drop", "number", "--out", folder]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def run():
    """Run a command; what is not text becomes text."""
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def fails(run):
    """Run a command that must fail in one line, and return that line."""

    def fail(*arguments, code=1):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (code, ""), result.output
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        return result.stderr

    return fail


def make_study(folder, name="houses"):
    """Write runs made of random numbers, as a study would leave them."""
    rng = np.random.default_rng(0)
    config = StudyConfig(name, ("erm", "c-mixup"), ("mean",), 1, 5, "rmse", 0.25, hidden=(8,))
    store = Store(folder, config.to_dict())
    for method, effect in ERRORS.items():
        for split in range(5):
            error = float(effect * rng.uniform(0.99, 1.01))
            scores = Scores(20, error, error, None, 0, 1 - error, None)
            settings, trial, curves = None, None, {}
            if method != "mean":
                settings, trial = Settings(epochs=3), 0
                curves = {part: [2.0, 1.5, error] for part in ("train", "validation", "test")}
            run = Run(name, method, split, 0, settings, trial)
            values = rng.normal(size=(20, 1))
            store.add(
                RunRecord(
                    run,
                    {"validation": scores, "test": scores},
                    "finished",
                    3,
                    3,
                    0.2,
                    (60, 20, 20),
                    {"regaug": "0.1.0"},
                    curves=curves,
                    sample=Sample(values.tolist(), (values + 0.1).tolist()),
                )
            )


@pytest.fixture(scope="session")
def write_study():
    """Write the folder of a study: ``write_study(folder, name="houses")``."""
    return make_study
