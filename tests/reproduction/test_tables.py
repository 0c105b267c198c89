"""The tables as runs: which rows there are, what they share, and what is cut to fit the time."""

import pytest

from regaug.exceptions import ArgumentError, UnknownNameError
from regaug.reproduction import published
from regaug.reproduction.problems import find
from regaug.reproduction.recipes import METHODS, paper_settings, tuned_settings
from regaug.reproduction.tables import (
    EXPERIMENTS,
    Size,
    find_data,
    fit_to_time,
    list_runs,
    make_rows,
)
from regaug.runs.tasks import estimate_seconds


def rows_of(name, data="airfoil", **options):
    return make_rows(EXPERIMENTS[name], find(data), size=Size(**options))


def test_every_table_of_results_belongs_to_an_experiment():
    numbers = {number for experiment in EXPERIMENTS.values() for number in experiment.tables}
    assert numbers == {1, 3, 4, 5, 6, 7, 10, 11}  # 2 is the time, 8 and 9 are settings


def test_the_papers_methods_are_trained_in_both_protocols(made_up):
    rows = rows_of("in-distribution")
    assert [row.method for row in rows if row.protocol == "paper"][: len(METHODS)] == list(METHODS)
    tuned = [row for row in rows if row.protocol == "tuned" and row.runs[0].settings is not None]
    assert len({len(row.runs) for row in tuned}) == 1  # as many for every method
    assert {len({run.split for run in row.runs}) for row in tuned} == {10}
    assert [row.label for row in rows if row.method == "boosting"] == ["boosting"] * 2


def test_settings_are_those_that_are_published():
    own = paper_settings("airfoil", "foma-rho", seed=5)
    assert (own.learning_rate, own.batch_size, own.epochs, own.seed) == (5e-4, 128, 100, 5)
    assert own.method_settings["rho"] == 0.975
    assert own.method_settings["anneal"] is None
    mixup = paper_settings("exchange-rate", "mixup", seed=0)
    assert (mixup.batch_size, mixup.clip, mixup.method_settings["alpha"]) == (128, 10.0, 1.5)
    assert paper_settings("dti", "erm", seed=0).metric == "pearson"


def test_close_batches_are_the_same_runs_in_two_tables(made_up):
    compared = {row.label: row for row in rows_of("in-distribution") if row.protocol == "paper"}
    batches = {row.label: row for row in rows_of("batches")}
    close, random = batches["foma, nearest batches"], batches["foma, random batches"]
    assert [run.key for run in close.runs] == [run.key for run in compared["foma"].runs]
    assert not {run.key for run in random.runs} & {run.key for run in close.runs}


def test_the_ablation_has_a_row_for_each_published_one(real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    rows = rows_of("ablation", "no2")
    assert len(rows) == len(published.cells(table=5, data="no2", metric="rmse")) == 10
    for row in rows:
        for name, value in row.options.items():
            assert row.runs[0].settings.method_settings[name] == value


def test_noise_tries_four_strengths_on_every_seed(made_up):
    row = next(row for row in rows_of("noise", seeds=2) if row.method == "noise")
    assert len(row.runs) == 8
    assert {run.settings.method_settings["sigma"] for run in row.runs} == {0.1, 0.01, 0.001, 0.0001}


def test_one_protocol_alone_can_be_asked_for(made_up):
    for protocol in ("paper", "tuned"):
        rows = rows_of("in-distribution", protocols=(protocol,))
        assert {row.protocol for row in rows} == {protocol}


def test_pairs_act_behind_the_bypass_of_a_series_net():
    assert paper_settings("exchange-rate", "c-mixup", seed=0).method_settings["place"] == "features"
    assert paper_settings("airfoil", "c-mixup", seed=0).method_settings["place"] == "layer"
    drawn = tuned_settings("exchange-rate", "c-mixup", 20, epochs=5, patience=2)
    assert {settings.method_settings["place"] for settings in drawn} == {"input", "features"}


def test_plain_training_is_always_there(made_up):
    experiment = EXPERIMENTS["in-distribution"]
    rows = make_rows(experiment, find("airfoil"), methods=["ada"], size=Size())
    assert {"erm", "ada"} <= {row.method for row in rows}
    with pytest.raises(UnknownNameError):
        make_rows(experiment, find("airfoil"), methods=["fomma"], size=Size())


def test_data_sets_of_another_table_are_refused():
    with pytest.raises(ArgumentError, match="must be of ablation: no2, electricity; got 'crimes'"):
        find_data(EXPERIMENTS["ablation"], ["crimes"])


def test_little_time_cuts_epochs_and_settings_but_no_method(made_up):
    data = find("airfoil")
    problems = {own.name: own for own in (data.problem("paper"), data.problem("tuned"))}

    def make(size):
        return make_rows(EXPERIMENTS["in-distribution"], data, size=size)

    def fit(minutes):
        return fit_to_time(make, problems, size=Size(seeds=2), max_minutes=minutes, jobs=1)

    (whole, full), (some, cut) = fit(None), fit(0.2)
    assert full.is_full
    assert not cut.is_full
    times = [estimate_seconds(list_runs(rows), problems) for rows in (some, whole)]
    assert times[0] < times[1]
    assert [row.label for row in some] == [row.label for row in whole]
    assert whole[0].runs[0].settings.epochs == 100
    own = [run for row in some if row.protocol == "paper" for run in row.runs if run.settings]
    assert {run.settings.epochs for run in own} == {cut.epochs}  # as many for all
    assert cut.epochs < 100


def test_the_papers_protocol_comes_first_and_early_settings_of_all_methods(made_up):
    rows = rows_of("in-distribution")
    runs = list_runs([*rows[::-1], *rows])  # in no good order, and twice
    assert len(runs) == len({run.key for row in rows for run in row.runs})
    assert [run.problem for run in runs] == sorted(run.problem for run in runs)
    paper = [run.is_baseline for run in runs if run.problem == "airfoil/paper"]
    assert paper == sorted(paper)
    tuned = [run.trial for run in runs if run.problem == "airfoil/tuned" and not run.is_baseline]
    assert tuned == sorted(tuned)
