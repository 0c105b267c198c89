"""AugmentedMLPRegressor: scikit-learn's own checks, shapes, seeds, searches, and the folder."""

import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_regression
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from regaug import methods
from regaug.cli.main import app
from regaug.data import load
from regaug.data.base import Part
from regaug.data.scaling import Scaler
from regaug.ensemble import Ensemble, fit_ensemble
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    CheckpointError,
    DivergedError,
    UnknownNameError,
)
from regaug.integrations.sklearn import AugmentedMLPRegressor
from regaug.integrations.sklearn.rows import StoppingRule
from regaug.problems import Problem
from regaug.studies.plan import QUICK_METHODS, make_plan
from regaug.training import Settings, fit_many

CHECKS = """
import sys
from sklearn.utils.estimator_checks import check_estimator
from regaug.integrations.sklearn import AugmentedMLPRegressor
from regaug.integrations.sklearn.rows import StoppingRule
results = check_estimator(AugmentedMLPRegressor(**eval(sys.argv[1])), on_skip=None, on_fail=None)
bad = [(r["check_name"], r["status"], r["exception"]) for r in results if r["status"] != "passed"]
print(f"{len(results) - len(bad)} of {len(results)} checks of check_estimator passed", bad or "")
sys.exit(len(bad))
"""


pytestmark = pytest.mark.filterwarnings("ignore:.*nets were trained for all max_iter")


def small(method="foma-rho", **changes):
    options = {"members": 2, "hidden_layer_sizes": (16,), "max_iter": 5, "random_state": 0}
    return AugmentedMLPRegressor(method, **(options | changes))


def make_rows(n=60, d=4, targets=None, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    y = x @ rng.standard_normal((d, targets or 1)) + 0.1 * rng.standard_normal((n, targets or 1))
    return x, y if targets else y[:, 0]


def run_checks(options):
    # One of the checks is left out where SciPy was imported without this.
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHECKS, options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    count = int(done.stdout.split()[0])
    assert count >= 50


def test_every_check_of_scikit_learn_passes():
    run_checks("{'members': 2, 'max_iter': 20, 'hidden_layer_sizes': (16,)}")


@pytest.mark.slow
def test_every_check_of_scikit_learn_passes_with_the_defaults():
    run_checks("{}")


@pytest.mark.parametrize("targets", [None, 1, 3])
@pytest.mark.parametrize("n", [2, 3, 10, 60])
def test_predictions_have_the_shape_of_the_targets(n, targets):
    x, y = make_rows(n, targets=targets)
    model = small().fit(x, y)
    assert model.predict(x).shape == y.shape
    assert model.n_outputs_ == (targets or 1)
    mean, std = model.predict(x[:1], return_std=True)
    assert mean.shape == std.shape == y[:1].shape
    assert np.isfinite(mean).all()
    assert (std >= 0).all()


@pytest.mark.parametrize(
    "method", [name for name in methods.names() if name not in ("ada", "cems")]
)
def test_two_rows_and_equal_rows_are_enough_for_methods_that_learn_nothing(method):
    x = np.array([[0.0, 1.0], [1.0, 1.0]])
    assert np.isfinite(small(method).fit(x, [0.0, 1.0]).predict(x)).all()
    equal = small(method).fit(np.ones((6, 2)), np.full(6, 7.0))
    np.testing.assert_allclose(equal.predict(np.ones((1, 2))), 7.0, atol=2.0)


def test_one_row_is_refused():
    with pytest.raises(ValueError, match="minimum of 2"):
        small().fit(np.ones((1, 2)), [1.0])


def test_a_large_offset_costs_no_digits():
    x, y = make_rows()
    shifted = small(max_iter=100).fit(x + 2.0**30, y + 2.0**40)
    plain = small(max_iter=100).fit(x, y)
    difference = shifted.predict(x + 2.0**30) - 2.0**40 - plain.predict(x)
    assert np.abs(difference).max() < 1e-2


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-100, 1e154, 1e300])
def test_numbers_whose_squares_are_infinite_or_zero_are_learned_like_others(size):
    x, y = make_rows()
    expected, found = (
        small(max_iter=2).fit(unit * x, unit * y).predict(unit * x, return_std=True)
        for unit in (1.0, size)
    )
    np.testing.assert_allclose(np.divide(found, size), expected, rtol=1e-5)


def test_it_learns_and_the_mean_of_the_members_is_predicted():
    x, y = make_regression(n_samples=120, n_features=5, random_state=0)
    model = AugmentedMLPRegressor(members=3, max_iter=100, random_state=0).fit(x[:90], y[:90])
    assert model.score(x[90:], y[90:]) > 0.95
    (component,) = model.model_.components
    nets = component.models
    assert len(nets) == 3
    inputs = model.model_.preparation(x[90:])
    found = model.model_.bounds.clamp(nets.scale.inverse(nets(inputs)))
    np.testing.assert_allclose(model.predict(x[90:]), found.mean(0)[:, 0])


def test_targets_of_very_different_units_count_alike():
    x, y = make_rows(200, targets=2)
    y *= [1.0, 1e6]
    model = small(max_iter=100).fit(x, y)
    error = ((model.predict(x) - y) ** 2).mean(axis=0) / y.var(axis=0)
    assert (error < 0.1).all()


def test_random_state_decides_everything():
    x, y = make_rows()
    first = small().fit(x, y).predict(x)
    np.testing.assert_array_equal(first, small().fit(x, y).predict(x))
    assert (first != small(random_state=1).fit(x, y).predict(x)).any()
    state = np.random.RandomState(0)
    drawn = [small(random_state=state).fit(x, y).predict(x) for _ in range(2)]
    assert (drawn[0] != drawn[1]).any()
    assert np.isfinite(small(random_state=None).fit(x, y).predict(x)).all()


def test_early_stopping_ends_before_the_last_epoch_and_only_if_there_are_rows_for_it():
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((80, 3)), rng.standard_normal(80)
    options = {"max_iter": 60, "n_iter_no_change": 3, "learning_rate_init": 0.02}
    assert small(**options).fit(x, noise).n_iter_ < 60
    assert small(**options, early_stopping=False).fit(x, noise).n_iter_ == 60
    assert small(**options).fit(x[:39], noise[:39]).n_iter_ == 60  # four rows would be too few
    assert small(**options, validation_fraction=0.5).fit(x[:39], noise[:39]).n_iter_ < 60


def test_without_early_stopping_all_rows_are_trained_on_and_the_last_epoch_is_kept():
    x, y = make_rows()
    model = small("erm", members=1, max_iter=300, early_stopping=False, weight_decay=0.0)
    assert model.fit(x, y).score(x, y) > 0.98
    longer = clone(model).set_params(max_iter=301).fit(x, y)
    assert (longer.predict(x) != model.predict(x)).any()


def test_frames_keep_their_names():
    x, y = make_rows()
    frame = pd.DataFrame(x, columns=list("abcd"))
    model = small().fit(frame, pd.Series(y, name="price"))
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict(frame), small().fit(x, y).predict(x))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("dcba")])


def search_methods(x, y, jobs):
    pipeline = make_pipeline(StandardScaler(), small())
    names = {"augmentedmlpregressor__method": ["erm", "foma-rho", "c-mixup"]}
    search = GridSearchCV(pipeline, names, cv=2, n_jobs=jobs).fit(x, y)
    return search.cv_results_["mean_test_score"]


def test_it_works_in_a_pipeline_and_a_search():
    x, y = make_rows(80)
    scores = search_methods(x, y, jobs=None)
    assert len(set(scores)) == 3
    alone = cross_val_score(small("erm"), x, y, cv=2).mean()
    assert scores[0] == pytest.approx(alone, rel=1e-6)  # scaled twice, it is rounded otherwise


@pytest.mark.slow
def test_a_search_in_two_processes_finds_the_same():
    x, y = make_rows(80)
    np.testing.assert_allclose(search_methods(x, y, 2), search_methods(x, y, None), rtol=1e-4)


def test_a_copy_in_memory_predicts_the_same():
    x, y = make_rows()
    model = small().fit(x, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(x), model.predict(x))
    with pytest.raises(NotFittedError):
        clone(model).predict(x)


@pytest.fixture(scope="module")
def automatic():
    return small("auto").fit(*make_rows(70))


def test_auto_compares_the_five_methods_of_a_quick_study(automatic):
    errors = automatic.inner_errors_
    assert errors.keys() == set(QUICK_METHODS) == {"erm", "mixup", "c-mixup", "ada", "foma-rho"}
    assert all(0 < error < 3 for error in errors.values())
    assert small("auto").fit(*make_rows(70)).inner_errors_ == errors


def test_auto_is_the_method_that_it_has_chosen(automatic):
    x, y = make_rows(70)
    chosen = small(automatic.method_).fit(x, y)
    np.testing.assert_array_equal(chosen.predict(x), automatic.predict(x))
    assert automatic.model_.method == automatic.method_


def test_inner_errors_are_those_of_the_nets_on_rows_they_have_not_seen(automatic):
    # Of plain training, the slow way: a net for every fifth of the rows, scored on that fifth.
    x, y = (torch.tensor(v) for v in make_rows(70))
    x_scaler, y_scaler = Scaler.fit(x), Scaler.fit(y[:, None])
    whole = Part(
        x_scaler.transform(x).float(), y_scaler.transform(y[:, None]).float(), np.arange(70)
    )
    settings = automatic._settings(70)
    splits = StoppingRule(True, automatic.validation_fraction).inner_splits(whole, settings.seed)
    assert sorted(row for split in splits for row in split.test.rows) == list(range(70))
    problem = Problem(splits, is_scaled=True, hidden=(16,))
    plan = make_plan(
        problem, methods=["erm"], settings={"erm": settings}, seed=settings.seed, baselines=False
    )
    errors = [
        fit_many([split], "erm", [run.settings], hidden=(16,))[0].scores["test"].rmse
        for split, run in zip(splits, plan.runs, strict=True)
    ]
    assert automatic.inner_errors_["erm"] == pytest.approx(np.mean(errors), rel=1e-4)


def test_foma_has_random_batches_unless_it_is_told_otherwise():
    x, y = make_rows()
    assert small().fit(x, y).model_.settings.method_settings["sampler"] == "random"
    told = small(method_settings={"sampler": "nearest", "rho": 0.8}).fit(x, y).model_.settings
    assert (told.method_settings["sampler"], told.method_settings["rho"]) == ("nearest", 0.8)


def test_auto_is_plain_training_where_there_are_few_rows():
    x, y = make_rows(49)
    model = small("auto").fit(x, y)
    assert model.method_ == "erm"
    assert model.inner_errors_ == {}


@pytest.mark.parametrize("early_stopping", [True, False])
def test_auto_sees_what_hurts(early_stopping):
    # Mixing rows of an exact and steep curve at full strength spoils it.
    x = np.linspace(-3, 3, 120)[:, None]
    model = small("auto", max_iter=60, hidden_layer_sizes=(64, 64), early_stopping=early_stopping)
    errors = model.fit(x, np.sin(3 * x[:, 0])).inner_errors_
    assert errors["erm"] < 0.9
    assert errors["erm"] < errors["mixup"]
    # What is taken is plain training, or better than it beyond doubt.
    assert errors[model.method_] <= errors["erm"]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"method": "fomma"}, UnknownNameError, "Did you mean 'foma'"),
        ({"method_settings": {"rhoo": 1}}, UnknownNameError, "rho"),
        ({"method": "auto", "method_settings": {"rho": 0.5}}, ArgumentError, "Name a method"),
        ({"members": 0}, ArgumentError, "`members`"),
        ({"hidden_layer_sizes": ()}, ArgumentError, "`hidden_layer_sizes` must give the width"),
        ({"hidden_layer_sizes": (8, 0)}, ArgumentError, "`hidden_layer_sizes` must be at least 1"),
        ({"hidden_layer_sizes": "ab"}, ArgumentTypeError, "`hidden_layer_sizes`"),
        ({"hidden_layer_sizes": (8, 2.5)}, ArgumentTypeError, "`hidden_layer_sizes`"),
        ({"batch_size": "many"}, ArgumentError, "`batch_size`"),
        ({"validation_fraction": 0.6}, ArgumentError, "`validation_fraction`"),
        ({"max_iter": 0}, ArgumentError, "`max_iter` must be at least 1"),
        ({"max_iter": 2.5}, ArgumentTypeError, "`max_iter` must be a whole number"),
        ({"learning_rate_init": 0.0}, ArgumentError, "`learning_rate_init` must be greater"),
        ({"weight_decay": -1}, ArgumentError, "`weight_decay`"),
        ({"n_iter_no_change": 0}, ArgumentError, "`n_iter_no_change` must be at least 1"),
        ({"n_iter_no_change": 1.5}, ArgumentTypeError, "`n_iter_no_change`"),
        ({"early_stopping": "no"}, ArgumentError, "`early_stopping` must be True or False"),
        ({"linear": 1}, ArgumentError, "`linear`"),
        ({"batch_size": 0}, ArgumentError, "`batch_size`"),
        ({"frequencies": -1}, ArgumentError, "`frequencies`"),
        ({"average": 2.0}, ArgumentError, "`average`"),
        ({"method": 3}, ArgumentTypeError, "`method` must be the name"),
        ({"method_settings": 3}, ArgumentTypeError, "`method_settings` must be a dict"),
    ],
)
def test_wrong_parameters_are_refused_by_fit(changes, error, words):
    x, y = make_rows(20)
    model = small(**changes)
    with pytest.raises(error, match=words) as caught:
        model.fit(x, y)
    assert isinstance(caught.value, ValueError | TypeError)  # what a search expects


def test_to_wait_for_ever_is_to_stop_never(tmp_path):
    x, y = make_rows(80)
    model = small(max_iter=40, n_iter_no_change=np.inf, learning_rate_init=0.1)
    assert model.fit(x, y).n_iter_ == 40  # without a warning: nobody asked for an end
    model.save(tmp_path)
    assert AugmentedMLPRegressor.load(tmp_path).n_iter_no_change == np.inf


def test_flags_and_numbers_may_be_those_of_numpy():
    x, y = make_rows(80)
    own = {"early_stopping": np.bool_(False), "linear": np.bool_(True), "members": np.int64(1)}
    other = {"max_iter": np.int64(2), "hidden_layer_sizes": np.array([8, 8])}
    found = small(**own, **other).fit(x, y).predict(x)
    plain = small(
        early_stopping=False, linear=True, members=1, max_iter=2, hidden_layer_sizes=(8, 8)
    )
    np.testing.assert_array_equal(found, plain.fit(x, y).predict(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float32_in_float32_out(dtype, tmp_path):
    x, y = (part.astype(np.float32) for part in make_rows())
    model = small().fit(x.astype(dtype), y)
    mean, spread = model.predict(x, return_std=True)
    assert mean.dtype == spread.dtype == dtype
    np.testing.assert_allclose(mean, small().fit(x.astype(float), y).predict(x), rtol=1e-4)
    model.save(tmp_path)
    again = AugmentedMLPRegressor.load(tmp_path).predict(x)
    assert again.dtype == dtype
    np.testing.assert_array_equal(again, mean)


def test_it_says_when_it_would_have_gone_on():
    x, y = make_rows(200)
    with pytest.warns(ConvergenceWarning, match=r"2 of 2 nets .* all max_iter=3 epochs") as caught:
        small(max_iter=3).fit(x, y)
    assert caught[0].filename == __file__
    for quiet in ({"max_iter": 300, "n_iter_no_change": 2}, {"early_stopping": False}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            small(**quiet).fit(x, y)


@pytest.mark.parametrize("early_stopping", [True, False])
def test_a_rate_that_leads_to_infinity_is_an_error(early_stopping):
    x, y = make_rows(80)
    model = small("erm", learning_rate_init=1e30, early_stopping=early_stopping)
    with pytest.raises(DivergedError, match="lower learning rate"):
        model.fit(x, y)


@pytest.mark.parametrize("targets", [None, 1, 2])
@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d"]])
def test_a_folder_holds_all_of_it(targets, names, tmp_path):
    x, y = make_rows(targets=targets)
    rows = x if names is None else pd.DataFrame(x, columns=names)
    model = small(
        "c-mixup",
        method_settings={"alpha": np.float64(0.5)},
        members=np.int64(3),
        random_state=np.random.RandomState(0),
    ).fit(rows, y)
    model.save(tmp_path / "model")
    again = AugmentedMLPRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    for name in ("n_features_in_", "n_outputs_", "n_iter_", "method_", "inner_errors_"):
        assert getattr(again, name) == getattr(model, name)
    if names is not None:
        assert again.feature_names_in_.tolist() == names
    parameters = again.get_params()
    assert parameters.pop("random_state") is None
    assert parameters == {
        name: value for name, value in model.get_params().items() if name in parameters
    }
    assert parameters["hidden_layer_sizes"] == (16,)
    assert clone(again).fit(rows, y).predict(rows).shape == y.shape
    again.save(tmp_path / "model")  # over the old one


def test_a_folder_can_be_used_by_the_command(tmp_path):
    x, y = make_rows(targets=2)
    frame = pd.DataFrame(x, columns=list("abcd"))
    model = small().fit(frame, pd.DataFrame(y, columns=["price", "tax"]))
    model.save(tmp_path / "model")
    new = frame[list("dbca")].assign(more=1.0)
    new.to_csv(tmp_path / "new.csv", index=False)
    arguments = ["predict", str(tmp_path / "model"), str(tmp_path / "new.csv")]
    arguments += ["-o", str(tmp_path / "out.csv")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    out = pd.read_csv(tmp_path / "out.csv")
    assert "price_low" not in out
    predicted = out[["price_predicted", "tax_predicted"]]
    np.testing.assert_allclose(predicted, model.predict(frame), rtol=1e-4, atol=1e-4)
    refused = CliRunner().invoke(app, [*arguments, "--force", "--interval", "0.9"])
    assert refused.exit_code != 0
    assert "trained on all its rows" in refused.output + str(refused.exception)


def test_a_model_that_no_estimator_saved_is_refused(tmp_path):
    settings = Settings(epochs=1)
    fit_ensemble(load("synthetic-sine", n=40), members=1, settings=settings).save(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"not saved by AugmentedMLPRegressor.*Ensemble\.load"
    ):
        AugmentedMLPRegressor.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {}},
        {"parameters": None},
        {"feature_names": ["a"]},
        {"feature_names": [1, 2, 3, 4]},
        {"is_flat": 1},
        {"n_iter": True},
        {"inner_errors": []},
        {"more": 1},
    ],
)
def test_a_model_that_says_something_else_about_its_estimator_is_refused(change, tmp_path):
    small().fit(*make_rows()).save(tmp_path)
    model = Ensemble.load(tmp_path)
    about = {"estimator": {**model.about["estimator"], **change}}
    replace(model, about=about).save(tmp_path)
    with pytest.raises(CheckpointError, match="Fit it again"):
        AugmentedMLPRegressor.load(tmp_path)


def sklearn_net(seed):
    net = make_pipeline(StandardScaler(), MLPRegressor(random_state=seed))
    return TransformedTargetRegressor(net, transformer=StandardScaler())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diabetes", "no2", "airfoil"])
def test_the_default_is_as_good_as_the_net_of_scikit_learn(name, real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    data = load(name)
    errors = {"theirs": [], "ours": []}
    for seed in range(10):
        test = data.split(seed).test.rows
        train = np.setdiff1d(np.arange(len(data)), test)
        models = {"theirs": sklearn_net(seed), "ours": AugmentedMLPRegressor(random_state=seed)}
        for who, model in models.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(data.x[train], data.y[train, 0])
            error = model.predict(data.x[test]) - data.y[test, 0]
            errors[who].append(np.sqrt(np.mean(error**2)))
    means = {who: np.mean(values) for who, values in errors.items()}
    print(f"{name}: {means['theirs']:.4g} (MLPRegressor), {means['ours']:.4g}")
    assert means["ours"] <= means["theirs"]
