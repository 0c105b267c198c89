"""What an epoch costs: runs like any other, timed in turns."""

import json

import pytest

from regaug.reproduction import timing
from regaug.reproduction.experiments import run_timing
from regaug.reproduction.problems import PaperData, find
from regaug.reproduction.timing import ROUNDS, VARIANTS, Times, measure_times, plan_rounds
from regaug.runs.record import RunRecord
from regaug.runs.store import Store


def finish(run, seconds):
    epochs = run.settings.epochs
    return RunRecord(run, {}, "finished", 0, epochs, seconds * epochs, (100, 32, 32), {})


def test_a_round_has_every_variant_once():
    rounds = plan_rounds(PaperData("airfoil", "airfoil"))
    assert len(rounds) == ROUNDS
    for number, runs in enumerate(rounds):
        assert [run.method for run in runs] == [method for method, _ in VARIANTS]
        assert {run.trial for run in runs} == {number}
        assert {run.settings.batch_size for run in runs} == {32}
    assert len({run.key for runs in rounds for run in runs}) == ROUNDS * len(VARIANTS)


def test_ratios_are_medians_of_what_was_timed_in_the_same_round():
    data = PaperData("airfoil", "airfoil")
    plain = [0.1, 0.2, 0.4]
    records = []
    for seconds, runs in zip(plain, plan_rounds(data), strict=False):
        records += [finish(run, seconds * (1 + place)) for place, run in enumerate(runs)]
    found = measure_times(data, records)
    assert found.rounds == 3
    assert [row.ratio for row in found.rows] == pytest.approx([1, 2, 3, 4, 5, 6, 7])
    assert found.rows[1].seconds == pytest.approx(0.4)
    assert found.rows[1].published_ratio == pytest.approx(0.148 / 0.058)
    assert len(found.keys) == len(records)
    assert Times.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert measure_times(data, records[1:7]) is None  # no plain training to compare with


def test_timings_are_kept_and_not_repeated(made_up, tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "ROUNDS", 2)
    told = []
    (found,) = run_timing(tmp_path / "store", ["airfoil"], progress=told.append)
    assert found.rounds == 2
    assert [(row.method, row.place) for row in found.rows] == list(VARIANTS)
    assert (told[0].planned, told[0].left) == (14, 14)
    assert sum(len(progress.records) for progress in told) == 14
    records = Store.open(tmp_path / "store").records()
    assert set(found.keys) == set(records)
    assert {record.run.problem for record in records.values()} == {"airfoil/time"}
    assert {record.epochs for record in records.values()} == {5}
    (again,) = run_timing(tmp_path / "store", ["airfoil"])
    assert again == found
    assert measure_times(find("airfoil"), records.values()) == found


def test_the_first_round_takes_the_time_it_needs(made_up, tmp_path):
    (found,) = run_timing(tmp_path / "store", ["airfoil"], max_minutes=1e-9)
    assert found.left == ("airfoil: 1 of 5 rounds are done. Run the same command again to go on.")
    assert found.rounds == 1
    assert len(found.rows) == len(VARIANTS)
