"""Batches of several tensors: one draw for all of them, and the same form back."""

from collections import OrderedDict, UserDict, namedtuple
from types import MappingProxyType

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import DataLoader

from regaug import ADA, CEMS, FOMA, CMixup, Compose, GaussianNoise, Identity, Mixup, methods
from regaug.augment.structures import Joined
from regaug.exceptions import ArgumentError, ArgumentTypeError

EVERY = {
    "foma": FOMA,
    "foma two_nn_data": lambda: FOMA(k="two_nn_data"),
    "mixup": Mixup,
    "mixup append": lambda: Mixup(append=True),
    "mixup paired": lambda: Mixup(paired=True),
    "c-mixup": CMixup,
    "ada": lambda: ADA(clusters=3),
    "cems": CEMS,
    "cems neighbors": lambda: CEMS(neighbors=8),
    "noise": lambda: GaussianNoise(0.1),
    "identity": Identity,
    "chain": lambda: Compose(Mixup(), FOMA(k=2), GaussianNoise()),
}
Both = namedtuple("Both", ["image", "age"])


def make_parts(n=16, seed=0):
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn(n, 2, 3, generator=generator)
    return image, torch.randn(n, generator=generator), torch.randn(n, 2, generator=generator)


FORMS = {
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    "dict": lambda a, b: {"image": a, "age": b},
    "named tuple": Both,
    "ordered": lambda a, b: OrderedDict(image=a, age=b),
    "mapping": lambda a, b: UserDict(image=a, age=b),
    "nested": lambda a, b: {"image": a, "more": (b,)},
    "one": lambda a, b: [torch.cat([a.flatten(1), b[:, None]], dim=1)],
}


def tensors(batch):
    """All tensors of a batch as one table."""
    if isinstance(batch, torch.Tensor):
        return batch.reshape(len(batch), -1)
    items = batch.values() if hasattr(batch, "values") else batch
    return torch.cat([tensors(item) for item in items], dim=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", EVERY)
def test_several_inputs_are_augmented_as_one(name, form):
    image, age, y = make_parts()
    x = FORMS[form](image, age)
    rows = torch.cat([image.flatten(1), age[:, None]], dim=1)
    one, two = EVERY[name]().fit(x, y), EVERY[name]().fit(rows, y)
    for _ in range(3):
        new_x, new_y = one(x, y)
        expected_x, expected_y = two(rows, y)
        assert type(new_x) is type(x)
        torch.testing.assert_close(tensors(new_x), expected_x, rtol=0, atol=0)
        torch.testing.assert_close(new_y, expected_y, rtol=0, atol=0)
    if form == "dict":
        assert new_x["image"].shape == (len(new_y), 2, 3)
        assert new_x["age"].shape == (len(new_y),)


@pytest.mark.parametrize("name", EVERY)
def test_several_targets_are_augmented_as_one(name):
    x, level, rates = make_parts()
    y = {"level": level, "rates": rates}
    one, two = EVERY[name]().fit(x, y), EVERY[name]().fit(x, tensors(y))
    (new_x, new_y), (expected_x, expected_y) = one(x, y), two(x, tensors(y))
    assert torch.equal(new_x, expected_x)
    assert torch.equal(tensors(new_y), expected_y)
    assert list(new_y) == ["level", "rates"]
    assert new_y["level"].shape == (len(new_x),)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_left_untouched_comes_back_as_it_is(form):
    image, age, y = make_parts()
    x = FORMS[form](image, age)
    for augmentation in (FOMA(p=0.0), FOMA().eval(), Identity(append=True)):
        new_x, new_y = augmentation(x, y)
        assert new_x is x
        assert new_y is y


def test_the_callers_batch_is_not_changed():
    image, age, y = make_parts()
    x = {"image": image, "age": age}
    before = {name: part.clone() for name, part in x.items()}
    for augmentation in (FOMA(), Mixup(append=True)):
        augmentation(x, y)
        assert list(x) == ["image", "age"]
        assert all(torch.equal(x[name], part) for name, part in before.items())


@given(
    dtypes=st.lists(st.sampled_from([torch.float16, torch.float32, torch.float64]), min_size=2),
)
def test_every_tensor_keeps_its_precision(dtypes):
    x = [torch.randn(8, 2).to(dtype) for dtype in dtypes]
    new_x, _ = Mixup()(x, torch.randn(8))
    assert [part.dtype for part in new_x] == dtypes
    assert all(part.isfinite().all() for part in new_x)


def test_gradients_reach_every_input():
    image, age, y = make_parts()
    image.requires_grad_()
    age.requires_grad_()
    new_x, new_y = FOMA()({"image": image, "age": age}, y)
    (new_x["image"].sum() + new_x["age"].sum() + new_y.sum()).backward()
    assert image.grad.isfinite().all()
    assert age.grad.isfinite().all()
    assert age.grad.abs().sum() > 0


def test_a_mapping_that_cannot_be_changed_comes_back_as_a_dict():
    image, age, y = make_parts()
    new_x, _ = Mixup()(MappingProxyType({"image": image, "age": age}), y)
    assert isinstance(new_x, dict)
    assert list(new_x) == ["image", "age"]


# At a layer


class TwoTowers(nn.Module):
    """Takes codes and numbers, as a dict."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.join = nn.EmbeddingBag(10, 4), nn.Linear(6, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        z = torch.cat([self.embedding(x["tokens"]), x["numbers"]], dim=1)
        return self.head(torch.relu(self.join(z)))


@pytest.mark.parametrize("place", ["embedding", "join", ["embedding", "join"]])
@pytest.mark.parametrize("name", ["foma", "mixup", "mixup paired", "noise", "cems"])
def test_a_layer_behind_codes_is_augmented(name, place):
    if name == "mixup paired" and place != "join":
        pytest.skip("what goes around the layer has its rows as before")
    x = {"tokens": torch.randint(10, (16, 5)), "numbers": torch.randn(16, 2)}
    y = {"a": torch.randn(16, 1), "b": torch.randn(16)}
    net = TwoTowers()
    prediction, new_y = EVERY[name]().at(net, place)(x, y)
    assert list(new_y) == ["a", "b"]
    assert new_y["b"].ndim == 1
    F.mse_loss(prediction, new_y["a"]).backward()
    assert net.join.weight.grad.isfinite().all()
    net.eval()
    assert EVERY[name]().at(net, place)(x, y)[1] is y


def test_a_step_that_is_given_its_targets_has_one_tensor_of_them():
    net, x = nn.Linear(3, 1), torch.randn(8, 3)
    with pytest.raises(ArgumentTypeError, match="`y` must be one tensor for `act_in`.* got dict"):
        Mixup().at(net, "input").act_in(lambda x, y: None, x, {"y": torch.randn(8)})


def test_a_method_learns_from_several_tensors():
    image, age, y = make_parts(40)
    x = {"image": image, "age": age}
    for rows in (x, (image, age)):
        ready = methods.get("ada").prepare().fit(rows, y)
        assert ready.augmentation.centroids.shape[1] == 9
        new_x, _ = ready.augmentation(rows, y)
        assert type(new_x) is type(rows)


def test_the_input_of_a_model_may_be_several_tensors():
    class Adds(nn.Module):
        def forward(self, x):
            return x["a"] + x["b"]

    x = {"a": torch.randn(12, 2), "b": torch.randn(12, 2)}
    y = torch.randn(12)
    prediction, new_y = Mixup().at(Adds(), "input")(x, y)
    new_x, expected_y = Mixup()(x, y)
    torch.testing.assert_close(prediction, new_x["a"] + new_x["b"])
    torch.testing.assert_close(new_y, expected_y)


# In a loader


def make_samples(n=24):
    image, age, y = make_parts(n)
    return [
        {"id": f"row {i}", "image": image[i], "age": age[i], "code": i, "y": y[i]} for i in range(n)
    ]


def get(batch):
    return {"image": batch["image"], "age": batch["age"]}, batch["y"]


def put(batch, x, y):
    return {**batch, **x, "y": y}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_of_dicts_says_where_x_and_y_are(workers):
    collate = Mixup().as_collate_fn(get=get, set=put)
    loader = DataLoader(
        make_samples(),
        8,
        collate_fn=collate,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
        generator=torch.Generator().manual_seed(0),
    )
    batches = list(loader)
    image, _, y = make_parts(24)
    for number, batch in enumerate(batches):
        rows = slice(8 * number, 8 * number + 8)
        assert batch["id"] == [f"row {i}" for i in range(rows.start, rows.stop)]
        assert torch.equal(batch["code"], torch.arange(rows.start, rows.stop))
        assert not torch.equal(batch["image"], image[rows])
        # All of them are mixed with one draw: the partner of a row is the same everywhere.
        lam, partners = solve(y[rows], batch["y"])
        expected = lam * image[rows] + (1 - lam) * image[rows][partners]
        torch.testing.assert_close(batch["image"], expected, rtol=1e-3, atol=1e-3)


def solve(y, new_y):
    """Find lam and the partners of a mixed batch by trying all of them."""
    best = (float("inf"), None, None)
    for lam in torch.linspace(0, 1, 2001):
        all_pairs = lam * y[:, None] + (1 - lam) * y[None]
        apart = (all_pairs - new_y[:, None]).norm(dim=2)
        error = apart.min(dim=1)
        if (total := error.values.sum().item()) < best[0]:
            best = (total, lam, error.indices)
    return best[1], best[2]


def test_pairs_of_structures_need_nothing():
    image, age, y = make_parts(8)
    samples = [({"image": image[i], "age": age[i]}, y[i]) for i in range(8)]
    new_x, new_y = Mixup().as_collate_fn()(samples)
    expected_x, expected_y = Mixup()({"image": image, "age": age}, y)
    assert torch.equal(new_x["image"], expected_x["image"])
    assert torch.equal(new_y, expected_y)


def test_batches_may_be_made_in_a_way_of_ones_own():
    lengths = [3, 1, 2, 4]
    samples = [
        (torch.ones(length, 2) * i, torch.tensor([float(i)])) for i, length in enumerate(lengths)
    ]

    def pad(samples):
        rows, y = zip(*samples, strict=True)
        return nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.stack(y)

    new_x, new_y = Mixup().as_collate_fn(collate=pad)(samples)
    expected = Mixup()(*pad(samples))
    assert torch.equal(new_x, expected[0])
    assert torch.equal(new_y, expected[1])


def test_get_and_set_go_together():
    with pytest.raises(ArgumentError, match="`get` and `set` go together"):
        Mixup().as_collate_fn(get=get)


@pytest.mark.parametrize("batch", [torch.ones(3), [torch.ones(2, 1)] * 3, {"x": 1, "y": 2}])
def test_a_batch_that_is_no_pair_is_refused_with_the_way_out(batch):
    with pytest.raises(ArgumentTypeError, match=r"must be \(x, y\), got a .*as_collate_fn\(get="):
        Mixup().as_collate_fn(collate=lambda samples: batch)([])


# What is refused

X, Y = torch.randn(8, 3), torch.randn(8)
BAD = {
    "token ids": (
        ({"tokens": torch.ones(8, 3, dtype=torch.int64)}, Y),
        ArgumentTypeError,
        r"`x\['tokens'\]` must hold.*torch.int64.*augment.at\(model, \"embedding\"\)",
    ),
    "masks": (((X, torch.ones(8, 3) > 0), Y), ArgumentTypeError, r"`x\[1\]` must hold.*torch.bool"),
    "plain token ids": (
        (torch.ones(8, 3, dtype=torch.int64), Y),
        ArgumentTypeError,
        r"`x` must hold.*augment.at\(model, \"embedding\"\)",
    ),
    "text": (
        ({"x": X, "id": ["a"] * 8}, Y),
        ArgumentTypeError,
        r"`x\['id'\]\[0\]` must be.*got str",
    ),
    "other rows": (((X, X[:5]), Y), ArgumentError, r"got 8 in `x\[0\]`, 5 in `x\[1\]`"),
    "other targets": (((X, X), Y[:5]), ArgumentError, r"equal n, got \(8, 6\) and \(5,\)"),
    "nothing": (({}, Y), ArgumentError, "`x` must hold at least one tensor"),
    "no rows": (((X, torch.tensor(1.0)), Y), ArgumentError, r"`x\[1\]` must have rows"),
    "packed": (
        (pack_sequence([X]), Y),
        ArgumentTypeError,
        "`x` must be padded, got a packed sequence.*pad_packed_sequence",
    ),
    "integer targets": ((X, {"y": torch.arange(8)}), ArgumentTypeError, r"`y\['y'\]` must hold"),
    "array": ((X.numpy(), Y), ArgumentTypeError, "`x` must be a torch.Tensor.*got ndarray"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("is_training", [True, False])
def test_bad_batches_are_named(case, is_training):
    batch, error, message = BAD[case]
    with pytest.raises(error, match=message):
        FOMA().train(is_training)(*batch)
    with pytest.raises(error, match=message):
        FOMA().fit(*batch)


def test_a_single_tensor_is_not_copied():
    assert Joined("x", X).rows is X
    assert Joined("x", [X]).rows.data_ptr() == X.data_ptr()
