"""Models of other packages on the atlas, with their defaults.

    python -m benchmarks.atlas.rivals catboost|realmlp|tabm|mlp [jobs]

They need packages that regaug does not: ``pip install catboost pytabkit tabm``. Each gets the table
as it is: categories as categories, dates as days, and gaps as gaps where it can have them.
"""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.atlas.protocol import MOST_ROWS, Cell, cells, index, measure, rmse, rows


def frames(cell: Cell) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray, list[str]]:
    """Return inputs and targets to learn from and to test on, and which columns are categories."""
    table, learn, test = rows(cell)
    frame = table.frame[list(table.inputs)].copy()
    categories = []
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_bool_dtype(column):
            frame[name] = column.astype(float)
        elif not pd.api.types.is_numeric_dtype(column):
            dates = pd.to_datetime(column, errors="coerce", format="ISO8601")
            if dates.notna().mean() > 0.95:
                frame[name] = (dates - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
            else:
                frame[name] = column.astype(object).where(column.notna(), "missing").astype(str)
                categories.append(name)
    y = table.y[:, 0]
    return frame.iloc[learn], y[learn], frame.iloc[test], y[test], categories


def make_catboost(seed: int, categories: Sequence[str] = ()) -> Any:
    from catboost import CatBoostRegressor

    options: dict[str, Any] = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
    return CatBoostRegressor(random_seed=seed, cat_features=list(categories), **options)


def make_mlp(seed: int) -> Any:
    """Return scikit-learn's net on standardized inputs and targets, as its guide advises."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    net = make_pipeline(StandardScaler(), MLPRegressor(random_state=seed))
    return TransformedTargetRegressor(net, transformer=StandardScaler())


def catboost(cell: Cell) -> dict[str, Any]:
    x, y, x_test, y_test, categories = frames(cell)
    model = make_catboost(cell.split, categories)
    return {"rmse": rmse(model.fit(x, y).predict(x_test), y_test)}


def mlp(cell: Cell) -> dict[str, Any]:
    from regaug.data.tabular.encoding import Encoder

    x, y, x_test, y_test, _ = frames(cell)
    encoder = Encoder.fit(x)
    model = make_mlp(cell.split).fit(encoder.transform(x), y)
    return {"rmse": rmse(model.predict(encoder.transform(x_test)), y_test)}


def pytabkit(cell: Cell, name: str) -> dict[str, Any]:
    from pytabkit import RealMLP_TD_Regressor, TabM_D_Regressor

    x, y, x_test, y_test, categories = frames(cell)
    for column in x.columns:
        if column in categories:
            x[column], x_test[column] = (part[column].astype("category") for part in (x, x_test))
        else:
            median = x[column].astype(float).median()
            for part in (x, x_test):
                part[column] = part[column].astype(float).fillna(median)
    kind = {"realmlp": RealMLP_TD_Regressor, "tabm": TabM_D_Regressor}[name]
    model = kind(device="cpu", random_state=cell.split, n_threads=1, verbosity=0)
    model.fit(x, y, cat_col_names=categories or None)
    return {"rmse": rmse(np.asarray(model.predict(x_test)), y_test)}


RIVALS = {
    "catboost": catboost,
    "mlp": mlp,
    "realmlp": partial(pytabkit, name="realmlp"),
    "tabm": partial(pytabkit, name="tabm"),
}


def smallest_first() -> list[Cell]:
    """Return all cells, the first split of every table first, and of these the smallest ones."""
    rows = {name: min(entry["rows"], MOST_ROWS) for name, entry in index().items()}
    return sorted(cells(), key=lambda cell: (cell.split, rows[cell.table]))


if __name__ == "__main__":
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    measure(sys.argv[1], RIVALS[sys.argv[1]], smallest_first(), jobs=jobs)
