"""Tables with very many columns: time in proportion to them, and messages that stay short."""

import time

import numpy as np
import pandas as pd
import pytest

from regaug.data import read_table
from regaug.data.tabular.discovery import read_columns
from regaug.data.tabular.encoding import Encoder
from regaug.data.tabular.unusable import find_unusable
from regaug.exceptions import DataError

ROWS = 40


def make(columns, what):
    rng = np.random.default_rng(0)
    y = rng.normal(size=ROWS)
    if what == "numbers":
        x = rng.normal(size=(ROWS, columns)).round(3)
    elif what == "texts":
        x = rng.choice(["a", "b", "c"], (ROWS, columns))
    else:
        x = np.ones((ROWS, columns)) if what == "constants" else np.tile(y[:, None], columns)
    frame = pd.DataFrame(x, columns=[f"column {i}" for i in range(columns)])
    return pd.concat([frame, pd.DataFrame({"y": y})], axis=1)


class Names(list):
    """Names of columns that nobody may look through: one by one that takes the square of them."""

    def __contains__(self, name):
        raise AssertionError("looked through")

    def index(self, *given):
        raise AssertionError("looked through")


def test_no_list_of_columns_is_looked_through_for_each_of_them(monkeypatch):
    frame = make(4, "texts")
    assert len(read_columns(frame, Names(frame.columns)).frame.columns) == 5
    encoder = Encoder.fit(make(4, "numbers").drop(columns="y"))
    for module in ("encoding", "unusable"):
        name = f"regaug.data.tabular.{module}.column_names"
        monkeypatch.setattr(name, lambda frame, only=None: Names(map(str, frame.columns)))
    plain = make(4, "numbers")
    assert encoder.transform(plain).shape == (ROWS, 4)
    assert encoder.read(plain).shape == (ROWS, 5)
    assert find_unusable(encoder, plain) == []


def test_messages_name_the_first_columns_and_count_the_others():
    with pytest.raises(DataError, match="No input column is left: 'column 0' .* and 1,995 more"):
        read_table(make(2_000, "constants"), target="y")
    with pytest.raises(DataError) as caught:
        read_table(make(2_000, "constants"), target="y")
    assert len(str(caught.value)) < 1_000
    frame = make(60, "texts")
    constants = pd.DataFrame(1.0, frame.index, [f"constant {i}" for i in range(2_000)])
    frame = pd.concat([frame, constants], axis=1)
    assert len(read_table(frame, target="y").summary) < 3_000


def test_inputs_that_give_the_target_away_are_counted_too():
    summary = read_table(make(300, "copies"), target="y").summary
    assert summary.count("Likely leak") == 5
    assert "295 more inputs give a target away: 'column 5'" in summary
    assert len(summary) < 3_000


@pytest.mark.slow
@pytest.mark.serial
@pytest.mark.parametrize("what", ["numbers", "texts", "constants", "copies"])
def test_reading_takes_time_in_proportion_to_the_columns(what, tmp_path):
    seconds = []
    for columns in (2_000, 20_000):
        make(columns, what).to_csv(tmp_path / "wide.csv", index=False)
        start = time.process_time()
        if what == "constants":
            with pytest.raises(DataError):
                read_table(tmp_path / "wide.csv", target="y")
        else:
            str(read_table(tmp_path / "wide.csv", target="y").summary)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 25 * seconds[0]  # ten times the columns; of their square it would be 100
