"""All tables of the atlas are read, and nothing wrong is said about any of them."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from regaug.data import read_table

BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data"
ATLAS = Path(os.environ.get("REGAUG_DATA", BESIDE)) / "atlas"
INDEX = ATLAS / "index.json"
ENTRIES = json.loads(INDEX.read_text()) if INDEX.exists() else []
# Gaps, rare levels, groups, times and equal rows: there is nothing else to say about them.
USUAL = (
    " imputed: ",
    " pooled: ",
    " has ",
    "Groups: ",
    "Time: ",
    " the inputs of another row",
    "more",
)


def test_the_atlas_is_there():
    if not ENTRIES:
        pytest.skip(f"needs the tables of the atlas: set REGAUG_DATA, or put them in {BESIDE}")
    assert len(ENTRIES) == 53


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_a_table_of_the_atlas_is_read_with_nothing_wrong_said(entry):
    path = ATLAS / entry["file"]
    table = read_table(path, target=entry["target"], group=entry["group"], time=entry["time"])
    assert len(table) == entry["rows"]
    assert len(table.inputs) + (entry["time"] is not None) == entry["inputs"]
    assert table.leaks == ()
    assert table.readings == ()  # they are written plainly
    _, *lines = table.summary.splitlines()
    assert [line for line in lines if not any(words in line for words in USUAL)] == []
    # Every column of numbers is one still, with the numbers that pandas reads.
    plain = pd.read_csv(path)
    kinds = {column.name: column.kind for column in table.split(seed=0).encoder.columns}
    for name in table.inputs:
        if plain[name].dtype.kind in "iuf" and plain[name].nunique() > 20:
            assert kinds[name] == "number"
            found, expected = (frame[name].to_numpy(dtype=float) for frame in (table.frame, plain))
            np.testing.assert_array_equal(found, expected)
        if plain[name].astype(str).str.fullmatch(r"\d{4}-\d\d-\d\d").all():
            assert kinds[name] == "date"
