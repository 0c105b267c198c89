"""Stacked runs are the runs one by one: the same arithmetic, done for all of them at once."""

import numpy as np
import pytest
import torch

from regaug.data import standardize
from regaug.data.base import Part, Split
from regaug.data.datasets.synthetic import make_manifold
from regaug.models import MLP
from regaug.training import Machine, Settings, fit, fit_many

SMALL = (32, 32)
# Runs that differ in all that runs of one stack may differ in.
DIFFERENT = [
    {"learning_rate": 1e-3},
    {"learning_rate": 1e-2, "weight_decay": 1e-2, "patience": 3, "schedule": "cosine"},
    {"learning_rate": 3e-3, "weight_decay": 1e-3, "clip": 0.5, "optimizer": "adam"},
    {"learning_rate": 1e-3, "clip": 0.1},
    {"learning_rate": 0.3, "patience": 1, "clip": 1.0, "schedule": "cosine", "optimizer": "adam"},
    {"learning_rate": 1e-2, "weight_decay": 0.1},
    {"learning_rate": 1e-3},
    {"learning_rate": 0.5, "patience": 1, "optimizer": "adam"},
]
# Some have the arithmetic of another one here, with other draws.
ALIKE = [("epbeta-mixup", {}), ("k-mixup", {}), ("neighbor-mixup", {"place": "layer"})]
METHODS = [
    ("erm", {}),
    ("foma-rho", {}),
    ("foma-rho", {"place": "layer"}),
    ("mixup", {}),
    ("c-mixup", {}),
    ("c-mixup", {"place": "layer"}),
    ("ada", {}),
    ("ada", {"place": "layer"}),
    ("manifold-mixup", {}),
    ("noise", {}),
    ("foma", {}),
    ("foma", {"place": "layer"}),
    ("cems", {}),
    ("k-mixup", {}),
    ("manifold-mixup", {"pairs": "assignment"}),
    ("neighbor-mixup", {}),
    ("neighbor-mixup", {"place": "layer"}),
    ("epbeta-mixup", {}),
    ("sk-mixup", {}),
    ("sk-mixup", {"place": "layer", "distance": "inputs", "alpha_y": 2.0}),
    ("rare", {}),
]


@pytest.fixture(scope="module")
def splits():
    roll = make_manifold("swiss-roll", n=120, noise=0.1)
    return [standardize(roll.split(seed)) for seed in range(8)]


def make_split(train, validation=20, test=25, columns=3, targets=1, seed=0, more=False):
    """A split whose parts have any sizes, with groups in the test part."""
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(columns, targets, generator=generator)

    def part(n):
        x = torch.randn(n, columns, generator=generator)
        y = (x @ mixing).tanh() + 0.1 * torch.randn(n, targets, generator=generator) + 2.0
        return Part(x=x, y=y, rows=np.arange(n), groups=np.arange(n) % 3)

    return standardize(
        Split(part(train), part(validation), part(test), {"later": part(9)} if more else {})
    )


def one_by_one(splits, method, settings, hidden=SMALL, precision="64", **options):
    """Train the runs with `fit`, from the weights that `fit_many` begins with."""
    results = []
    for split, own in zip(splits, settings, strict=True):
        columns, targets = split.train.x.shape[1], split.train.y.shape[1]
        net = MLP(columns, targets, hidden=hidden, seed=own.seed)
        results.append(
            fit(net, split, method, own, machine=Machine(precision=precision), **options)
        )
    return results


def assert_same(result, expected, split, tolerance=1e-8):
    """Compare two results, predictions in standardized units."""
    assert result.settings == expected.settings
    assert (result.ending, result.best_epoch) == (expected.ending, expected.best_epoch)
    assert result.predictions.keys() == expected.predictions.keys()
    for name, prediction in expected.predictions.items():
        std = torch.from_numpy(split.y_scaler.std)
        apart = (result.predictions[name] - prediction).abs() / std
        assert apart.max() <= tolerance, name
        assert result.scores[name].rmse == pytest.approx(expected.scores[name].rmse, rel=1e-6)
        assert result.scores[name].groups.keys() == expected.scores[name].groups.keys()
    assert len(result.history) == len(expected.history)
    for line, other in zip(result.history, expected.history, strict=True):
        for field in ("loss", "train", "validation", "test"):
            value, same = getattr(line, field), getattr(other, field)
            assert value == (
                same if same is None else pytest.approx(same, rel=1e-7, nan_ok=True)
            ), field
    for name, weight in expected.weights.items():
        torch.testing.assert_close(result.weights[name], weight, rtol=0, atol=tolerance)


def assert_stacked_is_one_by_one(splits, method, settings, hidden=SMALL, **options):
    many = fit_many(splits, method, settings, hidden=hidden, dtype=torch.float64, **options)
    ones = one_by_one(splits, method, settings, hidden, **options)
    for result, expected, split in zip(many, ones, splits, strict=True):
        assert_same(result, expected, split)
    return many


@pytest.mark.parametrize(
    ("method", "own"),
    [pytest.param(*own, marks=pytest.mark.slow if own in ALIKE else []) for own in METHODS],
    ids=str,
)
def test_eight_different_runs_are_the_same_stacked_and_one_by_one(splits, method, own):
    settings = [
        Settings(epochs=8, seed=seed, method_settings=own, **different)
        for seed, different in enumerate(DIFFERENT)
    ]
    results = assert_stacked_is_one_by_one(splits, method, settings)
    assert {result.ending for result in results} == {"early", "finished"}


def test_the_net_of_the_paper_is_the_same_at_a_layer(splits):
    settings = [
        Settings(epochs=8, seed=seed, method_settings={"place": "layer"}, **different)
        for seed, different in enumerate(DIFFERENT)
    ]
    assert_stacked_is_one_by_one(splits, "foma-rho", settings, hidden=(128, 128))


def test_runs_of_all_sizes_at_all_places_are_the_same_in_one_call():
    """Other numbers of rows, batches and epochs, a batch larger than the rows, several layers."""
    sizes = [(70, 20, 25), (33, 7, 40), (100, 31, 5), (16, 1, 1), (70, 20, 25), (64, 8, 8)]
    splits = [make_split(*size, seed=seed, more=seed == 2) for seed, size in enumerate(sizes)]
    settings = [
        Settings(seed=1, epochs=6, batch_size=16),
        Settings(seed=2, epochs=3, batch_size=16, patience=1, learning_rate=0.1),
        Settings(seed=3, epochs=4, batch_size=16, method_settings={"place": "layer"}),
        Settings(seed=4, epochs=5, batch_size=500),
        Settings(seed=5, epochs=6, batch_size=16, schedule="cosine"),
        Settings(seed=6, epochs=4, batch_size=10, method_settings={"place": "layers"}),
    ]
    assert_stacked_is_one_by_one(splits, "mixup", settings)


@pytest.mark.parametrize("method", ["foma-rho", "c-mixup", "ada"])
def test_runs_with_other_numbers_of_batches_are_the_same(method):
    splits = [make_split(train, seed=train, targets=2) for train in (100, 40, 79, 40)]
    settings = [
        Settings(seed=seed, epochs=4, batch_size=13, learning_rate=rate, clip=clip)
        for seed, (rate, clip) in enumerate([(1e-2, None), (1e-2, 0.3), (1e-2, None), (1e-2, None)])
    ]
    assert_stacked_is_one_by_one(splits, method, settings)


FOMA_OPTIONS = [
    ("foma-rho", {"center": True}),
    ("foma-rho", {"scale": "leading"}),
    ("foma-rho", {"targets": "keep"}),
    ("foma-rho", {"gradient": "frozen"}),
    ("foma-rho", {"weight": "lam"}),
    ("foma-rho", {"weight": "lam2", "p": 0.5, "anneal": None}),
    ("foma-rho", {"lam_range": (1.0, 1.5), "sampler": "random"}),
    ("foma-rho", {"append": True}),
    ("foma-rho", {"append": True, "weight": "lam", "p": 0.5}),
    ("foma", {"k": 2}),
    ("foma", {"k": "two_nn_data"}),
    ("mixup", {"append": True, "p": 0.5}),
    ("c-mixup", {"append": True, "p": 0.5}),
    ("c-mixup", {"paired": False}),
    ("ada", {"append": True, "p": 0.5}),
    ("cems", {"neighbors": "batch", "d": 2}),
]


@pytest.mark.parametrize("place", ["input", "layer"])
@pytest.mark.parametrize(("method", "own"), FOMA_OPTIONS, ids=str)
def test_the_options_of_a_method_are_the_same(method, own, place):
    splits = [make_split(60, seed=0, targets=2), make_split(45, 12, 12, seed=1, targets=2)]
    settings = [
        Settings(seed=7, epochs=4, batch_size=15, method_settings={**own, "place": place}),
        Settings(seed=8, epochs=3, batch_size=15, method_settings={**own, "place": place}),
    ]
    assert_stacked_is_one_by_one(splits, method, settings)


def test_a_list_of_places_with_the_input_among_them_is_the_same(splits):
    own = {"place": ["block_2", "input"], "p": 0.8}
    settings = [Settings(seed=seed, epochs=4, method_settings=own) for seed in range(4)]
    assert_stacked_is_one_by_one(splits[:4], "foma-rho", settings)


@pytest.mark.parametrize("metric", ["rmse", "mae", "mape", "r2", "pearson"])
def test_every_metric_chooses_the_same_epoch(metric):
    splits = [make_split(50, 8 + 3 * seed, 11, targets=2, seed=seed) for seed in range(3)]
    settings = [
        Settings(seed=seed, epochs=8, metric=metric, learning_rate=0.03, patience=2)
        for seed in range(3)
    ]
    assert_stacked_is_one_by_one(splits, "erm", settings)


@pytest.mark.parametrize("record", [(), ("test",), ("train", "train"), ("validation", "test")])
def test_only_what_is_asked_for_is_recorded(splits, record):
    settings = [Settings(seed=seed, epochs=2) for seed in range(2)]
    for result in assert_stacked_is_one_by_one(splits[:2], "erm", settings, record=record):
        for line in result.history:
            assert (line.train is not None) == ("train" in record)
            assert (line.test is not None) == ("test" in record)


def test_targets_need_not_be_standardized():
    own = make_split(60)
    split = Split(own.train, own.validation, own.test)
    settings = Settings(seed=3, epochs=3)
    [result] = fit_many(split, "ada", [settings], hidden=SMALL, dtype=torch.float64)
    [expected] = one_by_one([split], "ada", [settings])
    torch.testing.assert_close(result.predictions["test"], expected.predictions["test"])


@pytest.mark.parametrize(("method", "own"), METHODS, ids=str)
def test_one_step_in_float32_agrees_to_the_fifth_digit(splits, method, own):
    settings = [
        Settings(epochs=1, batch_size=100, seed=seed, method_settings=own, learning_rate=rate)
        for seed, rate in enumerate((1e-3, 1e-2, 3e-2))
    ]
    many = fit_many(splits[:3], method, settings, hidden=(128, 128))
    ones = one_by_one(splits[:3], method, settings, (128, 128), precision="32")
    for result, expected, split in zip(many, ones, splits[:3], strict=True):
        apart = (result.predictions["test"] - expected.predictions["test"]).abs()
        assert apart.max() / split.y_scaler.std[0] <= 1e-5


def check_mean_error(method, epochs):
    """Compare the mean test error of 30 seeds, stacked and one by one, in float32."""
    split = make_split(80, 30, 60)
    settings = [Settings(epochs=epochs, seed=seed, learning_rate=1e-2) for seed in range(30)]
    many = fit_many(split, method, settings, hidden=SMALL)
    ones = one_by_one([split] * 30, method, settings, precision="32")
    errors, expected = (
        np.array([result.scores["test"].rmse for result in results]) for results in (many, ones)
    )
    assert expected.std() > 0
    assert abs(errors.mean() - expected.mean()) < expected.std(ddof=1) / np.sqrt(30)


@pytest.mark.parametrize("method", ["erm", "foma-rho"])
def test_thirty_seeds_in_float32_have_the_same_mean_error(method):
    check_mean_error(method, epochs=5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["erm", "foma-rho"])
def test_thirty_seeds_in_float32_have_the_same_mean_error_after_long_training(method):
    check_mean_error(method, epochs=100)
