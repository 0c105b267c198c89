"""A made-up Airfoil in the layout of the real one, for whoever needs a data set of the paper."""

import numpy as np
import pytest


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A data folder with an Airfoil of 1503 rows, and nothing else."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (1503, 5))
    y = 120 + 3 * np.sin(3 * x[:, 0]) + 2 * x[:, 1] + 0.3 * rng.standard_normal(1503)
    folder = tmp_path / "data" / "airfoil"
    folder.mkdir(parents=True)
    np.savetxt(folder / "airfoil_self_noise.dat", np.column_stack([x, y]), delimiter="\t")
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path / "data"))
    return tmp_path / "data"
