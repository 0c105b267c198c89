"""The tables as runs: which rows there are, what they share, and what is cut to fit the time."""

from itertools import product

import pytest
import torch

from regaug.exceptions import ArgumentError, UnknownNameError
from regaug.reproduction import published
from regaug.reproduction.problems import SCALINGS, find
from regaug.reproduction.recipes import (
    COMMON,
    METHODS,
    RELEASED,
    paper_settings,
    released_settings,
    tuned_settings,
)
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
    assert (mixup.batch_size, mixup.clip, mixup.method_settings["alpha"]) == (128, None, 1.5)
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


def test_what_was_released_is_trained_as_it_takes_effect():
    own = released_settings("airfoil", seed=2)
    assert (own.learning_rate, own.batch_size, own.epochs, own.seed) == (1e-2, 32, 100, 2)
    assert own.method_settings["targets"] == "keep"
    assert (own.method_settings["place"], own.method_settings["rho"]) == ("layer", 0.975)
    assert released_settings("dti", seed=0).learning_rate == 5e-5
    assert released_settings("povertymap", seed=0).epochs == 2
    assert released_settings("povertymap", seed=0).method_settings["place"] == "stem"
    assert released_settings("rcf-mnist", seed=0).method_settings["sampler"] == "weighted"


def test_of_table_9_16_of_63_cells_differ_from_what_takes_effect():
    differing = 0
    for data in RELEASED:
        printed, own = published.settings(data, "foma-rho"), RELEASED[data]
        differing += sum(
            getattr(printed, name) != getattr(own, name)
            for name in ("learning_rate", "batch_size", "epochs")
        )
        differing += sum(
            printed.method_settings[name] != getattr(own, name)
            for name in ("place", "scale", "alpha", "rho")
        )
    assert differing == 16


def test_rivals_have_the_settings_that_their_authors_released():
    ada = paper_settings("airfoil", "ada", seed=0)
    assert (ada.learning_rate, ada.batch_size, ada.epochs) == (1e-2, 16, 200)
    assert ada.method_settings["clusters"] == 8
    assert ada.method_settings["cluster_by"] == "raw"
    for data in ("exchange-rate", "electricity", "rcf-mnist"):
        assert paper_settings(data, "ada", seed=0).method_settings["cluster_by"] == "targets"
    echo = paper_settings("echo", "c-mixup", seed=0).method_settings
    assert (echo["alpha"], echo["bandwidth"], echo["place"]) == (0.2, 50.0, "input")
    poverty = paper_settings("povertymap", "c-mixup", seed=0)
    assert (poverty.batch_size, poverty.method_settings["place"]) == (64, "input")
    assert paper_settings("echo", "foma", seed=0).method_settings["place"] == "stage_1"
    for data in ("airfoil", "no2", "crimes"):  # of the data at the inputs, of a batch at a layer
        assert paper_settings(data, "foma", seed=0).method_settings["k"] == "two_nn_data"
    for data in COMMON:
        assert paper_settings(data, "foma", seed=0).clip is None


def test_plain_training_is_repeated_with_the_rate_batches_and_epochs_of_others(made_up):
    rows = {row.label: row for row in rows_of("in-distribution", protocols=("paper",))}
    for label in ("foma", "foma-rho", "foma-rho, released", "ada"):
        own, plain = rows[label].runs[0].settings, rows[f"erm, trained as {label}"].runs[0].settings
        assert (own.learning_rate, own.batch_size, own.epochs) == (
            *(plain.learning_rate, plain.batch_size, plain.epochs),
        )
        assert plain.method_settings == {}
    nearest = rows["erm, trained as foma-rho, nearest batches"]
    assert nearest.method == "erm"
    assert nearest.runs[0].settings.method_settings == {"sampler": "nearest"}


def test_targets_are_scaled_in_further_rows_and_a_kernel_along(made_up):
    rows = {row.label: row for row in rows_of("in-distribution", protocols=("paper",))}
    for method, scaling in product(("erm", "foma", "foma-rho", "c-mixup", "ada"), SCALINGS):
        row = rows[f"{method}; targets {scaling}"]
        assert row.is_ours
        assert {run.problem for run in row.runs} == {f"airfoil/paper-{scaling}"}
    data = find("airfoil")
    y = data.problem("paper").split(0).train.y
    width = rows["c-mixup; targets min-max"].runs[0].settings.method_settings["bandwidth"]
    assert width == pytest.approx(1.75 / float(y.max() - y.min()))
    scaled = data.problem("paper-min-max").split(0)
    assert (scaled.train.y.min(), scaled.train.y.max()) == (0.0, 1.0)
    assert torch.allclose(scaled.restore(scaled.train.y), y)
    assert torch.equal(scaled.train.x, data.problem("paper").split(0).train.x)


def test_seeds_take_turns_so_that_methods_compare_early(made_up):
    runs = list_runs(rows_of("batches", seeds=3))
    assert [run.split for run in runs] == sorted(run.split for run in runs)


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
    problems = {own.name: own for own in map(data.problem, data.protocols)}

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
    is_tuned = [run.problem == "airfoil/tuned" for run in runs]
    assert is_tuned == sorted(is_tuned)
    paper = [run.is_baseline for run in runs if run.problem == "airfoil/paper"]
    assert paper == sorted(paper)
    tuned = [run.trial for run in runs if run.problem == "airfoil/tuned" and not run.is_baseline]
    assert tuned == sorted(tuned)
