"""What every augmentation keeps to. A new one is covered by being public."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from regaug import FOMA, CMixup, Compose, GaussianNoise, Mixup, augment

AUGMENTATIONS = {
    name.lower(): getattr(augment, name) for name in augment.__all__ if name != "Augmentation"
}
# Every augmentation with its defaults, and settings that change what it does to a batch.
CASES = {
    **AUGMENTATIONS,
    "foma two_nn": lambda **options: FOMA(k="two_nn", **options),
    "foma leading": lambda **options: FOMA(k=2, scale="leading", center=True, **options),
    "mixup paired": lambda **options: Mixup(paired=True, **options),
    "c-mixup paired": lambda **options: CMixup(paired=True, **options),
    "compose two": lambda **options: Compose(FOMA(), GaussianNoise(0.1), **options),
}
SHAPES = [((12, 3), (12,)), ((12, 3), (12, 1)), ((12, 2, 5), (12, 3)), ((12, 1), (12, 2, 2))]


def make_batch(x_shape=(12, 3), y_shape=(12,), seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(x_shape, generator=generator).to(dtype)
    return x, torch.randn(y_shape, generator=generator).to(dtype)


def make(name, x, y, **options):
    """Make and fit an augmentation; few rows allow few clusters."""
    if name == "ada":
        options["clusters"] = min(4, len(x))
    return CASES[name](**options).fit(x, y)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=CASES)
def name(request):
    return request.param


def is_paired(name):
    return name.endswith("paired")


def originals(name, x, y):
    return (x[: len(x) // 2], y[: len(y) // 2]) if is_paired(name) else (x, y)


def test_eval_is_the_identity(name):
    x, y = make_batch()
    new_x, new_y = make(name, x, y).eval()(x, y)
    assert new_x is x
    assert new_y is y


def test_neutral_parameters_are_the_identity(name):
    x, y = make_batch()
    augmentation = make(name, x, y)
    new = augmentation.transform(x, y, augmentation.neutral)
    assert all(torch.equal(a, b) for a, b in zip(new, originals(name, x, y), strict=True))


@pytest.mark.parametrize(("x_shape", "y_shape"), SHAPES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_shapes_and_dtypes_are_kept(name, x_shape, y_shape, dtype):
    x, y = make_batch(x_shape, y_shape, dtype=dtype)
    new_x, new_y = make(name, x.float(), y.float())(x, y)
    old_x, old_y = originals(name, x, y)
    assert (new_x.shape, new_x.dtype) == (old_x.shape, dtype)
    assert (new_y.shape, new_y.dtype) == (old_y.shape, dtype)
    assert new_x.isfinite().all()
    assert new_y.isfinite().all()


def test_the_callers_tensors_are_not_changed(name):
    x, y = make_batch()
    before = x.clone(), y.clone()
    augmentation = make(name, x, y)
    for _ in range(5):
        augmentation(x, y)
    assert torch.equal(x, before[0])
    assert torch.equal(y, before[1])


def test_same_seed_same_result(name):
    x, y = make_batch()
    results = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)
        augmentation = make(name, x, y, generator=seeded(3))
        results.append([augmentation(x, y)[0] for _ in range(3)])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_the_order_of_rows_does_not_matter_to_a_transform(name):
    x, y = make_batch(dtype=torch.float64)
    augmentation = make(name, x, y)
    params = augmentation.draw(x, y)
    if not (name.startswith("foma") or name == "identity"):
        pytest.skip("its parameters belong to the rows")
    new_x, new_y = augmentation.transform(x, y, params)
    flipped_x, flipped_y = augmentation.transform(x.flip(0), y.flip(0), params)
    torch.testing.assert_close(flipped_x.flip(0), new_x)
    torch.testing.assert_close(flipped_y.flip(0), new_y)


X, Y = make_batch((8, 3), (8,))
UGLY = {
    "one row": (X[:1], Y[:1]),
    "two rows": (X[:2], Y[:2]),
    "equal rows": (X[:1].expand(8, -1), Y[:1].expand(8)),
    "constant targets": (X, torch.ones(8)),
    "zero columns": (X * torch.tensor([1.0, 0.0, 0.0]), Y),
    "all zero": (X * 0, Y * 0),
    "rank one": (torch.outer(Y, torch.arange(1.0, 4.0)), Y),
    "dead units": (torch.relu(X - 3.0), Y),
    "more columns than rows": make_batch((4, 50), (4, 2)),
    "tiny": (X * 1e-12, Y * 1e-12),
    "huge": (X * 1e12, Y * 1e12),
    "mixed": (X * torch.tensor([1e-9, 1.0, 1e9]), Y),
}


@pytest.mark.parametrize("kind", UGLY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ugly_batches_are_finite_with_their_gradients(name, kind, dtype):
    x, y = (tensor.to(dtype) for tensor in UGLY[kind])
    if is_paired(name) and len(x) % 2:
        pytest.skip("a paired batch has an even number of rows")
    augmentation = make(name, x, y, generator=seeded(1))
    for _ in range(5):
        leaf = x.clone().requires_grad_()
        new_x, new_y = augmentation(leaf, y)
        assert new_x.isfinite().all()
        assert new_y.isfinite().all()
        (new_x.mean() + new_y.mean()).backward()
        assert leaf.grad.isfinite().all()


def test_odd_sizes_work(name):
    if is_paired(name):
        pytest.skip("a paired batch has an even number of rows")
    for n in (1, 3, 7):
        x, y = make_batch((n, 3), (n,))
        assert make(name, x, y)(x, y)[0].shape == (n, 3)


def test_a_layer_trains_with_finite_gradients(name):
    x, y = make_batch((16, 3), (16, 1))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    augmentation = make(name, x, y)
    at = augmentation.at(net, "1")
    for _ in range(5):
        net.zero_grad()
        loss = F.mse_loss(*at(x, y))
        loss.backward()
        assert loss.isfinite()
        assert all(parameter.grad.isfinite().all() for parameter in net.parameters())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_copies_continue_the_same_stream(name, copied):
    x, y = make_batch()
    augmentation = make(name, x, y)
    augmentation(x, y)
    other = copied(augmentation)
    assert torch.equal(augmentation(x, y)[0], other(x, y)[0])


def test_state_dict_restores_everything(name):
    x, y = make_batch()
    augmentation = make(name, x, y)
    augmentation(x, y)
    state = copy.deepcopy(augmentation.state_dict())
    expected = augmentation(x, y)[0]
    options = {"clusters": 4} if name == "ada" else {}
    other = CASES[name](**options)
    other.load_state_dict(state)
    assert torch.equal(other(x, y)[0], expected)


def test_moves_with_to(name):
    x, y = make_batch()
    augmentation = make(name, x, y).to(torch.float64).to("cpu").half().float()
    assert all(tensor.isfinite().all() for tensor in augmentation(x, y))


def test_goes_to_the_workers_of_a_loader(name):
    x, y = make_batch((32, 3), (32,))
    augmentation = make(name, x, y)
    loader = DataLoader(
        TensorDataset(x, y),
        8,
        num_workers=2,
        collate_fn=augmentation.as_collate_fn(),
        generator=seeded(0),
        multiprocessing_context="fork",
    )
    batches = list(loader)
    assert len(batches) == 4
    assert all(tensor.isfinite().all() for batch in batches for tensor in batch)


def test_p_zero_and_the_end_of_anneal_leave_the_originals(name):
    x, y = make_batch()
    expected = originals(name, x, y)
    off = make(name, x, y, p=0.0)
    annealed = make(name, x, y, anneal=0.5)
    annealed.progress = 0.5
    for augmentation in (off, annealed):
        new = augmentation(x, y)
        assert all(torch.equal(a, b) for a, b in zip(new, expected, strict=True))


def test_append_puts_the_originals_first(name):
    x, y = make_batch()
    old_x, old_y = originals(name, x, y)
    new_x, new_y = make(name, x, y, append=True)(x, y)
    assert torch.equal(new_x[: len(old_x)], old_x)
    assert torch.equal(new_y[: len(old_y)], old_y)
    assert len(new_x) == len(new_y)
    assert len(new_x) in (len(old_x), 2 * len(old_x))
