"""What a call of `fit_many` returns: its runs are independent, ordered, and end each in its way."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from regaug.data import standardize
from regaug.data.base import Part, Split
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    CheckpointError,
    DivergedError,
    PlaceError,
    UnknownNameError,
)
from regaug.models import MLP
from regaug.training import Machine, Settings, fit, fit_many
from regaug.training.stacked import many, most_runs, stack
from regaug.training.stacked.training import Training

SMALL = (16, 16)


def make_split(n=60, columns=3, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def part(n):
        x = torch.randn(n, columns, generator=generator)
        return Part(x=x, y=x[:, :1].sin() + x[:, -1:] * x[:, :1], rows=np.arange(n))

    return standardize(Split(part(n), part(20), part(25)))


def train(data, method, settings, dtype=torch.float64, hidden=SMALL, **options):
    return fit_many(data, method, settings, dtype=dtype, hidden=hidden, **options)


def assert_close(result, expected, tolerance=1e-10):
    assert (result.ending, result.best_epoch) == (expected.ending, expected.best_epoch)
    assert len(result.history) == len(expected.history)
    for name, weight in expected.weights.items():
        torch.testing.assert_close(result.weights[name], weight, rtol=0, atol=tolerance)
    for name, prediction in expected.predictions.items():
        torch.testing.assert_close(
            result.predictions[name], prediction, rtol=tolerance, atol=tolerance
        )


def different_runs(method=None):
    return [
        Settings(epochs=6, seed=0, method_settings=method or {}),
        Settings(epochs=9, seed=1, learning_rate=0.05, patience=1, method_settings=method or {}),
        Settings(epochs=4, seed=2, clip=0.2, method_settings=method or {}),
        Settings(
            epochs=9, seed=3, optimizer="adam", schedule="cosine", method_settings=method or {}
        ),
    ]


METHODS = [("erm", {}), ("foma-rho", {}), ("foma-rho", {"place": "layer"}), ("c-mixup", {})]


@pytest.mark.parametrize(("method", "own"), METHODS, ids=str)
def test_a_run_does_not_depend_on_the_others(method, own):
    splits = [make_split(n, seed=n) for n in (60, 95, 60, 40)]
    settings = different_runs(own)
    together = train(splits, method, settings)
    order = [2, 0, 3, 1]
    shuffled = train([splits[i] for i in order], method, [settings[i] for i in order])
    for place, number in enumerate(order):
        assert_close(shuffled[place], together[number])
    for result, split, one in zip(together, splits, settings, strict=True):
        [alone] = train(split, method, [one])
        assert_close(alone, result)


def test_a_run_that_stops_early_leaves_the_others_as_they_are():
    split = make_split()
    steady = [Settings(epochs=12, seed=seed, learning_rate=1e-3) for seed in (0, 1)]
    wild = Settings(epochs=12, seed=2, learning_rate=0.3, patience=1)
    results = train(split, "mixup", [steady[0], wild, steady[1]])
    assert [result.ending for result in results] == ["finished", "early", "finished"]
    assert len(results[1].history) < 12
    for result, expected in zip(results[::2], train(split, "mixup", steady), strict=True):
        assert_close(result, expected)


@pytest.mark.parametrize(("method", "own"), METHODS, ids=str)
def test_the_same_call_twice_gives_the_same_bits(method, own):
    results = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        before = torch.get_rng_state()
        results.append(train(make_split(), method, different_runs(own), dtype=torch.float32))
        assert torch.equal(torch.get_rng_state(), before)
    for one, other in zip(*results, strict=True):
        assert one.history == other.history
        assert one.scores == other.scores
        assert all(torch.equal(w, other.weights[name]) for name, w in one.weights.items())


@pytest.mark.parametrize("rate", [1e18, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("method", "own"),
    [
        *METHODS,
        ("foma", {"place": "layer"}),
        ("c-mixup", {"place": "layer"}),
        ("ada", {"place": "layer"}),
        ("cems", {"place": "layer", "neighbors": "batch"}),
        ("manifold-mixup", {}),
        ("manifold-mixup", {"pairs": "assignment"}),
        ("manifold-mixup", {"pairs": "neighbors"}),
        ("sk-mixup", {"place": "layer", "distance": "inputs"}),
    ],
    ids=str,
)
def test_a_run_that_diverges_ends_and_leaves_the_others_as_they_are(method, own, dtype, rate):
    split = make_split()
    # Deep enough for the products of such weights to overflow in float64 as well.
    hidden = (16,) * (4 if dtype == torch.float32 else 18)
    good = [Settings(epochs=4, seed=seed, method_settings=own) for seed in (0, 1)]
    bad = Settings(epochs=4, seed=2, learning_rate=rate, method_settings=own)
    results = train(split, method, [good[0], bad, good[1]], dtype, hidden)
    lost = results[1]
    assert lost.ending == "diverged"
    assert not math.isfinite(lost.history[-1].loss)
    assert len(lost.history) < 4
    assert all(prediction.isfinite().all() for prediction in lost.predictions.values())
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    for result, expected in zip(
        results[::2], train(split, method, good, dtype, hidden), strict=True
    ):
        assert_close(result, expected, tolerance)


@pytest.mark.parametrize("metric", ["rmse", "mae", "mape", "r2", "pearson"])
def test_a_run_that_diverges_keeps_the_best_epoch_it_had(metric):
    split = make_split(seed=1)
    settings = [Settings(epochs=6, learning_rate=3e6, metric=metric), Settings(metric=metric)]
    lost, _ = train(split, "erm", [settings[0], replace(settings[1], epochs=6)], torch.float32)
    assert lost.ending == "diverged"
    assert 0 < lost.best_epoch < len(lost.history)
    best = lost.history[lost.best_epoch - 1].validation
    assert getattr(lost.scores["validation"], metric) == pytest.approx(best, rel=1e-5)


def test_a_run_diverges_in_the_epoch_in_which_it_does_alone():
    settings = Settings(epochs=6, learning_rate=3e6)
    [result] = train(make_split(), "erm", [settings], torch.float32)
    with pytest.raises(DivergedError, match=f"in epoch {len(result.history)}, step"):
        fit(MLP(3, hidden=SMALL), make_split(), "erm", settings)


@pytest.mark.parametrize(("rate", "hidden"), [(1e25, (1,)), (1e30, (16, 16))])
def test_a_last_step_too_far_is_no_error(rate, hidden):
    """The loss before it is finite; the error after it is infinite in one net, NaN in the other."""
    settings = [Settings(epochs=1, batch_size=60, learning_rate=rate), Settings(epochs=1)]
    far, near = train(make_split(), "erm", settings, torch.float32, hidden)
    assert near.best_epoch == 1
    assert far.best_epoch == 0
    assert math.isfinite(far.history[0].loss)
    assert not math.isfinite(far.history[0].validation)
    initial = MLP(3, hidden=hidden).state_dict()
    assert all(torch.equal(weight, initial[name]) for name, weight in far.weights.items())


def test_a_test_row_out_of_reach_is_no_error():
    """An epoch that is the best on the validation rows may predict infinity elsewhere."""
    own = make_split()
    far = replace(own.test, x=own.test.x * 1e38)
    settings = [Settings(epochs=2, learning_rate=100.0, seed=seed) for seed in (0, 1)]
    split = replace(own, test=far)
    initial = [{name: 0.01 * w for name, w in MLP(3, hidden=SMALL).state_dict().items()}] * 2
    for result in train(split, "erm", settings, torch.float32, initial=initial, record=()):
        assert (result.ending, result.best_epoch) == ("diverged", 0)
        assert result.predictions["test"].isfinite().all()
        assert all(torch.equal(w, initial[0][name]) for name, w in result.weights.items())


@pytest.mark.parametrize("keeps_test", [True, False])
def test_without_validation_rows_all_epochs_are_taken_and_the_last_is_kept(keeps_test):
    split = make_split()
    none = Part(split.test.x[:0], split.test.y[:0], split.test.rows[:0])
    bare = replace(split, validation=none, test=split.test if keeps_test else none)
    settings = Settings(epochs=6, batch_size=8, learning_rate=0.05, patience=1)
    (last,) = train(bare, "erm", [settings])
    assert (last.ending, last.best_epoch, len(last.history)) == ("finished", 6, 6)
    assert math.isnan(last.history[-1].validation)
    assert set(last.scores) == ({"test"} if keeps_test else set())
    # With validation rows the same training goes through the same epochs.
    (watched,) = train(split, "erm", [replace(settings, patience=None)])
    assert [e.loss for e in watched.history] == [e.loss for e in last.history]


def test_runs_with_and_without_validation_rows_go_together():
    split = make_split()
    bare = replace(split, validation=Part(split.test.x[:0], split.test.y[:0], split.test.rows[:0]))
    settings = [Settings(epochs=3, batch_size=8, seed=seed) for seed in (0, 1)]
    together = train([split, bare], "foma-rho", settings)
    assert_close(together[0], train(split, "foma-rho", settings[:1])[0])
    (alone,) = train(bare, "foma-rho", settings[1:])
    for name, weight in alone.weights.items():
        torch.testing.assert_close(together[1].weights[name], weight)


def test_the_loss_of_a_run_whose_layer_is_not_finite_is_nan():
    settings = Settings(batch_size=8, method_settings={"place": "layer"})
    runs = [Training.make(i, make_split(), "foma-rho", settings, SMALL, None) for i in range(3)]
    own = stack.Stack(runs, torch.float64, {"validation": 1})
    own.weights[0][1] = torch.inf
    [batches, *_] = stack.epoch_batches(own.runs, own.split_of_run, own.rows, 0)
    loss, _ = own._loss_and_gradient(next(own.augmentation.steps(batches)))
    assert loss.isnan().tolist() == [False, True, False]


def test_the_initial_weights_are_used_and_left_as_they_are():
    split = make_split()
    settings = [Settings(epochs=3, seed=seed) for seed in (0, 1)]
    nets = [MLP(3, hidden=SMALL, seed=seed).double() for seed in (70, 71)]
    initial = [net.state_dict() for net in nets]
    before = [{name: w.clone() for name, w in weights.items()} for weights in initial]
    results = train(split, "foma-rho", settings, initial=initial)
    for weights, same in zip(initial, before, strict=True):
        assert all(torch.equal(weights[name], w) for name, w in same.items())
    for result, net, own in zip(results, nets, settings, strict=True):
        assert_close(result, fit(net, split, "foma-rho", own, machine=Machine(precision="64")))


def test_initial_weights_in_float64_keep_their_digits():
    net = MLP(3, hidden=SMALL).double()
    initial = {name: weight + 1e-12 for name, weight in net.state_dict().items()}
    settings = Settings(epochs=1, learning_rate=1e-30)
    [result] = train(make_split(), "erm", [settings], initial=[initial])
    assert all(torch.equal(weight, initial[name]) for name, weight in result.weights.items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_weights_of_a_result_give_its_predictions(dtype):
    split = make_split()
    for result in train(split, "ada", different_runs(), dtype):
        net = MLP(3, hidden=SMALL, seed=9).to(dtype)
        net.load_state_dict(result.weights)
        with torch.no_grad():
            prediction = split.restore(net(split.test.x.to(dtype)))
        torch.testing.assert_close(prediction, result.predictions["test"])


def make_runs(split, method, settings):
    return [
        Training.make(number, split, method, own, SMALL, None)
        for number, own in enumerate(settings)
    ]


def test_predictions_do_not_depend_on_the_size_of_a_block():
    split = make_split()
    whole = train(split, "erm", different_runs())
    runs, recorded = make_runs(split, "erm", different_runs()), ("validation", "train", "test")
    in_blocks = stack.Stack(
        runs, torch.float64, dict.fromkeys(recorded, 1), block=16 * 4 * 3
    ).train()
    for run, result in in_blocks:
        expected = whole[run.number]
        assert_close(result, expected)
        assert [line.test for line in result.history] == pytest.approx(
            [line.test for line in expected.history], rel=1e-12
        )


def test_more_runs_than_a_stack_takes_come_back_in_order():
    split = make_split()
    most = most_runs(Settings().batch_size)
    settings = [Settings(epochs=2, seed=seed) for seed in range(most + 8)]
    results = train(split, "noise", settings)
    assert [result.settings.seed for result in results] == list(range(most + 8))
    for number in (0, most - 1, most, most + 7):
        [alone] = train(split, "noise", [settings[number]])
        assert_close(results[number], alone)


@pytest.fixture
def stacks(monkeypatch):
    """The numbers of the runs in every stack that is trained."""
    seen = []

    class Watched(stack.Stack):
        def __init__(self, runs, *others, **options):
            seen.append([run.number for run in runs])
            super().__init__(runs, *others, **options)

    monkeypatch.setattr(many, "Stack", Watched)
    return seen


def test_what_is_in_a_stack_depends_on_the_arguments_alone(monkeypatch):
    monkeypatch.setattr(many, "most_runs", lambda batch_size: 2)
    sizes, places = [8, 16, 8, 8, 16, 8], ["input", "input", "layer", "input", "input", "input"]
    settings = [
        Settings(epochs=1, batch_size=size, method_settings={"place": place})
        for size, place in zip(sizes, places, strict=True)
    ]
    for _ in range(2):
        stacks = many.make_stacks(make_runs(make_split(), "mixup", settings))
        numbers = [[run.number for run in runs] for runs in stacks]
        assert numbers == [[0, 3], [5], [1, 4], [2]]


def test_runs_that_differ_in_numbers_share_a_stack(stacks):
    splits = [make_split(n, seed=n) for n in (40, 90, 60)]
    settings = [
        Settings(
            epochs=1 + number, learning_rate=10.0**-number, method_settings={"rho": 0.8, "p": 0.5}
        )
        for number in range(2)
    ]
    train(
        splits, "foma-rho", [*settings, Settings(epochs=2, method_settings={"sampler": "random"})]
    )
    assert stacks == [[0, 1, 2]]


def test_splits_with_other_columns_are_trained_apart(stacks):
    splits = [make_split(columns=columns) for columns in (3, 5, 3)]
    results = train(splits, "erm", [Settings(epochs=1)] * 3)
    assert stacks == [[0, 2], [1]]
    assert [result.weights["block_1.linear.weight"].shape[1] for result in results] == [3, 5, 3]


def test_batches_of_pairs_and_plain_batches_are_trained_apart(stacks):
    """A sampler of pairs gives twice as many rows, also to a method that does not ask for them."""
    own = [{}, {"sampler": "kernel-pairs"}]
    settings = [Settings(epochs=2, method_settings=method) for method in own]
    results = train(make_split(), "mixup", settings)
    assert stacks == [[0], [1]]
    for result, one in zip(results, settings, strict=True):
        net = MLP(3, hidden=SMALL)
        assert_close(result, fit(net, make_split(), "mixup", one, machine=Machine(precision="64")))


@pytest.mark.serial
def test_the_time_of_a_stack_is_shared_among_its_runs():
    results = train(make_split(), "erm", different_runs())
    assert all(result.seconds > 0 for result in results)
    assert results[2].seconds < results[3].seconds  # fewer epochs


def test_progress_is_shown_when_it_is_asked_for(capsys):
    train(make_split(), "erm", different_runs(), progress=True)
    assert "run 4/4  rmse" in capsys.readouterr().err
    train(make_split(), "erm", different_runs())
    assert capsys.readouterr().err == ""


class Lazy:
    """Inputs that are read when they are asked for."""

    def __init__(self, x):
        self.x, self.shape = x, tuple(x.shape)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index]


def test_no_settings_give_no_results():
    assert fit_many(make_split(), "erm", []) == []
    assert fit_many([], "erm", [], initial=[]) == []


def one(**method):
    return [Settings(epochs=1, method_settings=method)]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        (("erm", one() * 2), {"data": 3}, ArgumentError, "each of the 2 runs, got 3"),
        (("erm", one()), {"initial": []}, ArgumentError, "`initial` .* each of the 1 runs, got 0"),
        (("erm", one()), {"initial": [{}]}, CheckpointError, "`initial` for run 0.*missing"),
        (("erm", one()), {"dtype": torch.float16}, ArgumentError, "`dtype` must be one of"),
        (("erm", one()), {"record": ("tests",)}, ArgumentError, "`record` must be one of"),
        (("fomma", one()), {}, UnknownNameError, "Did you mean 'foma'"),
        (("mixup", one(alfa=1.0)), {}, UnknownNameError, "Did you mean 'alpha'"),
        (("mixup", one(place="block_9")), {}, UnknownNameError, "Unknown layer 'block_9'"),
        (("mixup", one(place="head")), {}, PlaceError, "hidden block .*got 'head'.* with fit"),
        (("mixup", one(place="block_1.linear")), {}, PlaceError, "got 'block_1.linear'"),
        (("mixup", one(place=[])), {}, ArgumentError, "`place` must name at least one layer"),
        (("cems", one(place="layer")), {}, PlaceError, "neighbors='batch'"),
        (("mixup", one(place="layers", append=True)), {}, ArgumentError, "a single layer"),
        (("c-mixup", one(place="layers")), {}, ArgumentError, "a single layer"),
        (("erm", [Settings(stop_after=1)]), {}, ArgumentError, "`stop_after` must be None for"),
        (("erm", one()), {"hidden": ()}, ArgumentError, "`hidden` must give the width"),
    ],
)
def test_what_cannot_be_is_refused_in_words(arguments, options, error, words):
    data = [make_split()] * options.pop("data", 1)
    with pytest.raises(error, match=words):
        fit_many(data, *arguments, **options)


def test_inputs_that_are_not_in_memory_are_refused():
    own = make_split()
    for part in ("train", "validation", "test"):
        lazy = replace(getattr(own, part), x=Lazy(getattr(own, part).x))
        with pytest.raises(ArgumentTypeError, match="in memory.* with fit"):
            fit_many(replace(own, **{part: lazy}), "erm", one())


def test_data_that_are_not_split_are_refused():
    for data in (make_split().train, [make_split().train]):
        with pytest.raises(ArgumentTypeError, match="`data` must be a split.*got Part"):
            fit_many(data, "erm", one())
