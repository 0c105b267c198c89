"""What a report says of the data."""

import json
import math

import numpy as np
import pytest
import torch

from regaug.data.base import Part, Split
from regaug.data.datasets.synthetic import make_manifold
from regaug.dimension import two_nn
from regaug.exceptions import ArgumentError, RegaugError, StoreError
from regaug.studies.facts import ABOUT, Facts, describe, read_facts, write_facts
from regaug.studies.geometry import MOST_VALUES


def make_split(n: int, columns: int, *, constant: bool = False) -> Split:
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(3 * n, columns)), dtype=torch.float32)
    y = x[:, :1] * 2 + 5
    if constant:
        x, y = torch.ones_like(x), torch.ones_like(y)
    rows = np.arange(3 * n)
    return Split(*(Part(x[i::3], y[i::3], rows[i::3]) for i in range(3)))


def test_facts_agree_with_the_slow_way():
    split = make_split(90, 4)
    facts = describe(split, "four columns")
    joint = torch.cat([split.train.x, split.train.y], dim=1).double()
    joint = (joint - joint.mean(dim=0)) / joint.std(dim=0, correction=0)
    values = torch.linalg.svdvals(joint)
    assert facts.singular_values == pytest.approx(values.tolist(), rel=1e-4, abs=1e-3)
    shares = values.cumsum(dim=0) / values.sum()
    assert facts.k == int((shares <= 0.9).sum())
    assert facts.share == pytest.approx(shares[facts.k - 1].item(), rel=1e-4)
    assert facts.two_nn.dimension == pytest.approx(two_nn(joint).dimension, rel=1e-3)
    assert (facts.columns, facts.targets, facts.n_values) == (4, 1, 5)
    assert facts.rows == {"train": 90, "validation": 90, "test": 90}


def test_only_training_rows_are_looked_at():
    split = make_split(50, 3)
    other = Split(split.train, split.test, split.validation)
    assert describe(split, "") == describe(other, "")


def test_facts_come_back_from_their_file(tmp_path):
    given = {"source": "houses.csv", "target": ["price"], "group": "city"}
    facts = describe(make_manifold("line", n=200).split(), "größer <b>", given=given)
    path = write_facts(tmp_path / "new", facts)
    assert read_facts(tmp_path / "new") == facts
    assert Facts.from_dict(json.loads(json.dumps(facts.to_dict()))) == facts
    assert [file.name for file in path.parent.iterdir()] == [ABOUT]


def test_how_the_data_were_given_is_kept_in_one_form():
    given = {"source": "a.csv", "target": "price", "group": None, "drop": (), "other": 1}
    facts = describe(make_split(20, 2), "", given=given)
    assert facts.given == {"source": "a.csv", "target": ["price"]}


def test_a_folder_without_facts_gives_none(tmp_path):
    assert read_facts(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": 1}', "[" * 100_000, '{"format": 2}', "\xff"],
)
def test_a_damaged_file_is_refused_with_a_way_out(tmp_path, text):
    (tmp_path / ABOUT).write_bytes(text.encode("latin-1"))
    with pytest.raises(StoreError, match="Delete it"):
        read_facts(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"singular_values": ["x"]},
        {"singular_values": [math.nan]},
        {"k": "many"},
        {"rows": {"train": 5}},
        {"share": 3.0},
        {"two_nn": {"dimension": 1.0, "n_dropped": 0, "log_mu": [1.0], "neg_log_survival": []}},
        {"given": ["source"]},
    ],
)
def test_facts_of_the_wrong_form_are_refused(change):
    values = describe(make_split(20, 2), "").to_dict()
    with pytest.raises(ArgumentError, match="Facts.to_dict"):
        Facts.from_dict(values | change)


def test_constant_columns_and_few_rows_have_no_dimension():
    for split in (make_split(30, 2, constant=True), make_split(1, 2), make_split(2, 2)):
        facts = describe(split, "")
        assert facts.two_nn is None
        json.dumps(facts.to_dict(), allow_nan=False)


def test_a_grid_has_no_finite_dimension():
    x = torch.arange(30.0)[:, None]
    part = Part(x, x.clone(), np.arange(30))
    facts = describe(Split(part, part, part), "")
    assert facts.two_nn is not None
    assert facts.two_nn.dimension is None


def test_test_rows_that_were_trained_on_are_counted():
    split = make_split(30, 3)
    assert describe(split, "").shared_rows == 0
    train, validation, test = split.train, split.validation, split.test
    x, y = test.x.clone(), test.y.clone()
    x[4], y[4] = train.x[7], train.y[7]
    x[5], y[5] = validation.x[0], validation.y[0]
    x[6] = train.x[8]  # the same inputs with another target
    x[9], y[9] = x[4], y[4]
    leaky = Split(train, validation, Part(x, y, test.rows))
    assert describe(leaky, "").shared_rows == 3


def test_a_minus_zero_is_a_zero():
    zero, rows = torch.zeros(3, 2), np.arange(3)
    split = Split(*(Part(x, zero[:, :1], rows) for x in (zero, zero + 1, -zero)))
    assert describe(split, "").shared_rows == 3


def test_facts_that_an_earlier_version_wrote_are_read():
    values = describe(make_split(20, 2), "").to_dict()
    del values["shared_rows"]
    assert Facts.from_dict(values).shared_rows == 0


def test_wide_data_keep_the_first_values_and_count_all():
    facts = describe(make_split(100, 80), "")
    assert len(facts.singular_values) == MOST_VALUES
    assert facts.n_values == 81


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RegaugError, match="Could not write"):
        write_facts(tmp_path / "file", describe(make_split(20, 2), ""))


def test_leaks_are_kept_and_earlier_files_have_none():
    values = describe(make_split(20, 2), "", leaks=["Likely leak: 'a' equals 'y'."]).to_dict()
    assert Facts.from_dict(values).leaks == ("Likely leak: 'a' equals 'y'.",)
    del values["leaks"]
    assert Facts.from_dict(values).leaks == ()
