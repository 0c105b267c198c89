import numpy as np
import pytest
import torch

from regaug import _random
from regaug.augment.layer import INPUT
from regaug.data.base import Part, Split
from regaug.models import MLP
from regaug.training import Settings
from regaug.training.stacked.augmentation import StackAugmentation
from regaug.training.stacked.batches import Batches
from regaug.training.stacked.training import Training

RUNS, N, COLUMNS, HIDDEN = 4, 12, 3, (5, 6)


def make_batches(seed=0, columns=COLUMNS):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(RUNS, N, columns, generator=generator).double()
    return x, torch.randn(RUNS, N, 1, generator=generator).double()


def make_runs(method, **own):
    x, y = make_batches()
    runs = []
    for number in range(RUNS):
        part = Part(x=x[number].float(), y=y[number].float(), rows=np.arange(N))
        settings = Settings(seed=number, batch_size=N, method_settings=own)
        runs.append(Training.make(number, Split(part, part, part), method, settings, HIDDEN, None))
    return runs


def make_steps(stack, batches, progress=(0.0,), rows=None):
    """Take one step for each value of progress, with batches `(steps, runs, n, d)`."""
    steps = len(progress)
    progress = np.repeat(np.array(progress)[:, None], RUNS, axis=1)
    x, y = batches
    return list(stack.steps(Batches(x, y, rows, progress, [RUNS] * steps)))


def augment(runs, place, batches, hidden=None, progress=0.0):
    """Take one step at a place; `hidden` arrives there, if it is a layer.

    `runs` may be those of a stack that goes on.
    """
    stack = runs if isinstance(runs, StackAugmentation) else StackAugmentation(runs)
    [step] = make_steps(stack, [batch[None] for batch in batches], [progress])
    if place == INPUT:
        return step, step.x
    assert torch.equal(step.x, batches[0])
    return step, step.forward(place, hidden)


CASES = [
    ("erm", {}),
    ("noise", {}),
    ("mixup", {"p": 0.5}),
    ("mixup", {"p": 0.5, "append": True}),
    ("c-mixup", {"p": 0.5}),
    ("c-mixup", {"p": 0.5, "append": True}),
    ("ada", {"p": 0.5, "clusters": 3}),
    ("foma", {"p": 0.5}),
    ("foma-rho", {"p": 0.5, "append": True}),
    ("foma-rho", {"p": 0.0, "append": True}),
    ("foma-rho", {"p": 1.0, "anneal": None}),
    ("cems", {"p": 0.5, "neighbors": 5}),
    ("cems", {"p": 0.5, "neighbors": "batch", "d": "two_nn"}),
]


@pytest.mark.parametrize("at_once", [1, 3, 6])
@pytest.mark.parametrize(("method", "own"), CASES, ids=str)
def test_every_run_gets_what_its_own_augmentation_gives(method, own, at_once):
    """However many steps are augmented at once."""
    stack, others = StackAugmentation(make_runs(method, **own)), make_runs(method, **own)
    touched = 0
    for start in range(0, 6, at_once):
        numbers = range(start, start + at_once)
        x, y = (torch.stack(t) for t in zip(*map(make_batches, numbers), strict=True))
        steps = make_steps(stack, (x, y), [0.1 * number for number in numbers])
        for number, step in zip(numbers, steps, strict=True):
            for run, other in enumerate(others):
                other.augmentation.progress = 0.1 * number
                expected = other.augmentation(x[number - start, run], y[number - start, run])
                found = step.x[run], step.targets[run]
                if len(expected[0]) < len(found[0]):  # appended to nothing: all are there twice
                    expected = [torch.cat([t, t]) for t in expected]
                for one, wanted in zip(found, expected, strict=True):
                    torch.testing.assert_close(one, wanted, rtol=0, atol=1e-12)
                touched += other.augmentation.params is not other.augmentation.neutral
        for run, other in enumerate(others):
            assert (stack.parts[run].params is stack.parts[run].neutral) == (
                other.augmentation.params is other.augmentation.neutral
            )
    if own.get("p") == 0.5:  # some batches were touched and some were not
        assert 0 < touched < 6 * RUNS
    for run, rest in enumerate(stack.across.numbers.take(3, np.arange(RUNS))):
        expected = _random.uniforms(3, others[run].augmentation.generator)
        assert rest.tolist() == expected.tolist()  # the streams are at the same place


@pytest.mark.parametrize("d", ["two_nn_data", "own"])
def test_batches_of_which_some_need_fewer_numbers_are_augmented_at_once(d):
    """Also where the batch that would need most is not touched."""
    own = {"p": 0.5, "neighbors": 5, "sigma": 0.1, "anneal": None}
    stacks = []
    for _ in range(2):
        runs = make_runs("cems", **own)
        for number, run in enumerate(runs):
            x, y = run.split.train.x, run.split.train.y
            run.augmentation.d = 1 + number % 3 if d == "own" else d
            run.augmentation.fit(x, y)
        stacks.append(StackAugmentation(runs))
    for seed in range(8):
        x, y = (batch[None] for batch in make_batches(seed))
        [step] = make_steps(stacks[0], (x, y))
        for run, part in enumerate(stacks[1].parts):
            new_x, new_y = part(x[0, run], y[0, run])
            torch.testing.assert_close(step.x[run], new_x, rtol=0, atol=1e-12)
            torch.testing.assert_close(step.targets[run], new_y, rtol=0, atol=1e-12)


def test_the_batches_are_not_modified():
    x, y = make_batches()
    before = x.clone(), y.clone()
    step, new_x = augment(make_runs("foma-rho", p=0.5), INPUT, (x, y))
    assert not torch.equal(new_x, x)
    assert not torch.equal(step.targets, y)
    assert torch.equal(x, before[0])
    assert torch.equal(y, before[1])


@pytest.mark.parametrize("method", ["mixup", "foma-rho"])
def test_a_layer_that_is_not_meant_is_left_alone(method):
    batches = make_batches()
    step, _ = augment(make_runs(method, place="block_2"), INPUT, batches)
    hidden = make_batches(1, columns=5)[0]
    assert step.forward("block_1", hidden) is hidden
    assert not torch.equal(step.forward("block_2", hidden), hidden)
    delta = torch.ones_like(hidden)
    assert step.backward("block_1", delta, delta[..., :1]) is delta


def test_of_several_layers_each_run_acts_at_one():
    batches, hidden = make_batches(), make_batches(1, columns=5)[0]
    stack = StackAugmentation(make_runs("manifold-mixup", anneal=None))
    seen = set()
    for _ in range(10):
        [step] = make_steps(stack, [batch[None] for batch in batches])
        first, second = step.forward("block_1", hidden), step.forward("block_2", hidden)
        at_first = ~(first == hidden).all(dim=2).all(dim=1)
        at_second = ~(second == hidden).all(dim=2).all(dim=1)
        assert torch.equal(at_first, ~at_second)
        assert (step.targets != batches[1]).any(dim=2).any(dim=1).all()
        seen.add(tuple(at_first.tolist()))
    assert len(seen) > 1


def test_ada_at_a_layer_uses_the_clusters_of_the_inputs():
    """Rows that share a cluster at the input come together at the layer, whatever is there."""
    runs = make_runs("ada", place="layer", clusters=3)
    x, y = make_batches()
    hidden = make_batches(1, columns=5)[0]
    _, new = augment(runs, "block_1", (x, y), hidden)
    for run, (one, rows) in enumerate(zip(hidden, new, strict=True)):
        clusters = runs[run].augmentation._nearest(x[run], y[run])
        for cluster in clusters.unique():
            own = clusters == cluster
            torch.testing.assert_close(rows[own].mean(0), one[own].mean(0))


@pytest.mark.parametrize(("weight", "power"), [("lam", 1), ("lam2", 2)])
def test_losses_are_weighted_run_by_run(weight, power):
    stack = StackAugmentation(make_runs("foma-rho", weight=weight, p=0.5, anneal=None))
    seen = []
    for number in range(6):
        step, _ = augment(stack, INPUT, make_batches(number))
        found = step.loss_weights()
        expected = [part.params.lam**power for part in stack.parts]
        weights = torch.ones(RUNS) if found is None else found
        # A power of Python's may be the next float, on some processors.
        expected = torch.tensor(expected, dtype=weights.dtype)
        torch.testing.assert_close(weights, expected, rtol=1e-15, atol=0.0)
        seen += expected.tolist()
    assert min(seen) < 1.0 == max(seen)


def test_no_weights_where_all_are_one():
    for method in ("erm", "foma-rho", "mixup"):
        assert augment(make_runs(method), INPUT, make_batches())[0].loss_weights() is None


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("method", ["foma-rho", "foma", "k-mixup", "ada"])
def test_a_layer_that_is_not_finite_is_noted_and_the_others_go_on(method, value):
    own = {"place": "layer", "clusters": 3} if method == "ada" else {"place": "layer"}
    batches, hidden = make_batches(), make_batches(1, columns=5)[0]
    _, good = augment(make_runs(method, **own), "block_1", batches, hidden)
    broken = hidden.clone()
    broken[2, 7, 1] = value
    step, new = augment(make_runs(method, **own), "block_1", batches, broken)
    assert step.is_lost.tolist() == [False, False, True, False]
    assert new.isfinite().all()
    torch.testing.assert_close(new[[0, 1, 3]], good[[0, 1, 3]], rtol=0, atol=1e-10)
    delta = step.backward("block_1", 2 * new, step.targets)
    assert delta.shape == broken.shape
    assert delta.isfinite().all()


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_a_layer_that_is_not_finite_stays_within_its_run_where_rows_are_mixed(value):
    """So its loss says that it has diverged, and nobody has to look."""
    batches, hidden = make_batches(), make_batches(1, columns=5)[0]
    _, good = augment(make_runs("mixup", place="layer"), "block_1", batches, hidden)
    broken = hidden.clone()
    broken[2, 7, 1] = value
    step, new = augment(make_runs("mixup", place="layer"), "block_1", batches, broken)
    assert torch.equal(new[[0, 1, 3]], good[[0, 1, 3]])
    assert not new[2].isfinite().all()
    delta = step.backward("block_1", 2 * new, step.targets)
    assert delta[[0, 1, 3]].isfinite().all()


def test_no_run_is_lost_where_all_layers_are_finite():
    hidden = 1e300 * make_batches(1, columns=5)[0]  # the sum of such numbers may overflow
    step, _ = augment(make_runs("foma-rho", place="layer"), "block_1", make_batches(), hidden)
    assert step.is_lost is None or not step.is_lost.any()


def test_places_are_those_of_the_net():
    assert make_runs("manifold-mixup")[0].places == MLP(COLUMNS, hidden=HIDDEN).places
    assert make_runs("mixup")[0].places == (INPUT,)
    assert make_runs("mixup", place=["block_2", "block_2"])[0].places == ("block_2",)


LAYER_CASES = [
    ("mixup", {"p": 0.5}),
    ("mixup", {"p": 0.5, "append": True}),
    ("c-mixup", {"p": 0.5}),
    ("c-mixup", {"p": 0.5, "append": True}),
    ("c-mixup", {"p": 1.0, "append": True}),
    ("ada", {"p": 0.5, "clusters": 3}),
    ("foma", {"p": 0.5}),
    ("foma-rho", {"p": 0.5, "append": True}),
    ("foma-rho", {"p": 0.5, "targets": "keep"}),
    ("foma-rho", {"p": 0.0, "append": True}),
    ("foma-rho", {"p": 1.0}),
    ("noise", {"p": 0.5}),
    ("cems", {"p": 0.5, "neighbors": "batch", "d": 2}),
    ("erm", {}),
]


def test_steps_at_a_layer_are_the_same_however_many_are_drawn_at_once():
    """With several places, of which each run has one in a step."""
    own, hidden = {"p": 0.7, "anneal": None}, make_batches(1, columns=5)[0]
    found = []
    for at_once in (1, 2, 6):
        stack, seen = StackAugmentation(make_runs("manifold-mixup", **own)), []
        for start in range(0, 6, at_once):
            numbers = range(start, start + at_once)
            x, y = (torch.stack(t) for t in zip(*map(make_batches, numbers), strict=True))
            for step in make_steps(stack, (x, y), [0.1 * number for number in numbers]):
                layers = [step.forward(place, hidden) for place in ("block_1", "block_2")]
                seen += [*layers, step.targets]
        found.append(seen)
    for seen in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], seen, strict=True))


@pytest.mark.parametrize(("method", "own"), LAYER_CASES, ids=str)
def test_the_way_back_is_the_derivative_of_each_run_s_own_augmentation(method, own):
    own = own | {"place": "block_1"} | ({} if method == "erm" else {"anneal": None})
    stack, others = StackAugmentation(make_runs(method, **own)), make_runs(method, **own)
    generator = torch.Generator().manual_seed(5)
    for number in range(4):
        (x, y), hidden = make_batches(seed=number), make_batches(10 + number, columns=5)[0]
        step, new = augment(stack, "block_1", (x, y), hidden)
        delta = torch.randn(new.shape, generator=generator, dtype=new.dtype)
        of_targets = torch.randn(step.targets.shape, generator=generator, dtype=new.dtype)
        found = step.backward("block_1", delta.clone(), of_targets)
        for run, other in enumerate(others):
            leaf = hidden[run].clone().requires_grad_()
            with other.augmentation.observing(x[run], y[run]):
                one_x, one_y = other.augmentation(leaf, y[run])
            if len(one_x) < len(new[run]):  # appended to nothing: all rows are there twice
                one_x, one_y = (torch.cat([t, t]) for t in (one_x, one_y))
            torch.testing.assert_close(new[run], one_x.detach(), rtol=0, atol=1e-12)
            ((one_x * delta[run]).sum() + (one_y * of_targets[run]).sum()).backward()
            torch.testing.assert_close(found[run], leaf.grad, rtol=1e-9, atol=1e-9)


def test_training_rows_by_number_are_found_like_the_rows_themselves():
    """Clusters and sheets of training rows are looked up, and are those that a search finds."""
    for method, own in (("ada", {"clusters": 3}), ("cems", {"d": 2, "neighbors": 5, "sigma": 0.1})):
        batches, numbers = make_batches(), torch.arange(N).expand(1, RUNS, N)
        found = []
        for rows in (None, numbers):
            stack = StackAugmentation(make_runs(method, anneal=None, **own))
            [step] = make_steps(stack, [t[None].float().double() for t in batches], rows=rows)
            found.append((step.x, step.targets))
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
