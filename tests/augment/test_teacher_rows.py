"""TeacherRows: who labels what, where new inputs come from, what is looked up in a batch."""

import copy

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

from regaug import FOMA, Compose, FeatureMix, GaussianNoise, Mixup, TeacherRows
from regaug.augment import teachers
from regaug.augment.across import RunBatches
from regaug.augment.teacher_rows import TeacherParams
from regaug.augment.teachers import FoldTeachers, Taught, deal_folds
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    NonFiniteError,
    NotFittedError,
    PlaceError,
)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def make_data(n=40, d=3, m=1, seed=0, dtype=torch.float64):
    x = torch.randn(n, d, generator=seeded(seed), dtype=torch.float64)
    y = torch.stack([(x * (k + 1)).sin().sum(1) for k in range(m)], dim=1)
    return x.to(dtype), y.to(dtype)


class Heard:
    """A teacher that keeps what it was taught, and says its mean."""

    lessons = None  # shared by all copies

    def __init__(self, lessons):
        type(self).lessons = lessons

    def fit(self, x, y):
        self.lessons.append((x, y))
        self.mean = float(np.mean(y))
        return self

    def predict(self, x):
        return np.full(len(x), self.mean)


# Who labels


def test_the_teacher_of_a_new_row_has_not_seen_the_row_it_is_made_from():
    x, y = make_data(30)
    augment = TeacherRows(Heard([]), folds=4).fit(x, y)
    folds = deal_folds(x.numpy(), 4)
    for row in range(len(x)):
        others = y[torch.from_numpy(folds != folds[row])]
        torch.testing.assert_close(augment.labels[row], others.mean().expand(8, 1))
    assert len(Heard.lessons) == 4
    assert sorted(len(lesson[0]) for lesson in Heard.lessons) == [22, 22, 23, 23]


def test_both_parents_of_a_mixed_row_are_of_its_fold():
    x, y = torch.eye(20, dtype=torch.float64), torch.arange(20.0, dtype=torch.float64)
    augment = TeacherRows(Heard([]), rows="mixup", folds=3).fit(x, y)
    folds = torch.from_numpy(deal_folds(x.numpy(), 3))
    new = x[:, None] + augment.offsets
    for row in range(20):
        parents = (new[row].abs() > 1e-9).any(dim=0).nonzero().squeeze(1)
        assert (folds[parents] == folds[row]).all()
        assert len(parents) > 1


def test_labels_are_what_a_teacher_that_is_fitted_by_hand_says():
    x, y = make_data(40, m=2)
    augment = TeacherRows(LinearRegression(), folds=4, sigma=0.3).fit(x, y)
    folds, new = deal_folds(x.numpy(), 4), (x[:, None] + augment.offsets).numpy()
    for row in range(len(x)):
        own = folds != folds[row]
        plain = LinearRegression().fit(x[own].numpy(), y[own].numpy())
        np.testing.assert_allclose(augment.labels[row].numpy(), plain.predict(new[row]))


@pytest.mark.parametrize("teacher", ["boosting", "trees", "gp"])
def test_teachers_of_the_house_learn_a_smooth_function(teacher):
    x = torch.linspace(-2.0, 2.0, 150, dtype=torch.float64)[:, None]
    augment = TeacherRows(teacher, sigma=0.05, folds=2).fit(x, x.sin())
    new_x, new_y = augment(x, x.sin())
    assert (new_y - new_x.sin()).square().mean().sqrt() < 0.1
    assert not torch.equal(new_x, x)


def test_equal_inputs_share_a_fold():
    x = make_data(12)[0].repeat(3, 1)
    folds = deal_folds(x.numpy(), 5)
    assert (folds[:12] == folds[12:24]).all()
    assert (folds[:12] == folds[24:]).all()
    assert sorted(np.bincount(folds[:12])) == [2, 2, 2, 3, 3]


def test_what_is_known_of_rows_is_not_learned_again(monkeypatch):
    x, y = make_data(20)
    monkeypatch.setattr(teachers, "_KNOWN", type(teachers._KNOWN)())
    first = FoldTeachers.of("trees", x.numpy(), y.numpy(), 2)
    assert FoldTeachers.of("trees", x.numpy().copy(), y.numpy(), 2) is first
    assert FoldTeachers.of("trees", x.numpy(), -y.numpy(), 2) is not first
    assert FoldTeachers.of("trees", x.numpy(), y.numpy(), 3) is not first
    monkeypatch.setattr(teachers, "_MOST_KNOWN", 20)
    FoldTeachers.of("trees", x.numpy(), 2.0 * y.numpy(), 2)
    assert FoldTeachers.of("trees", x.numpy(), y.numpy(), 2) is not first


def test_a_teacher_sees_standardized_columns_and_answers_in_the_units_of_the_data():
    x, y = make_data(30)
    lessons = []
    said = Taught(Heard(lessons), 1e6 + 1e3 * x.numpy(), 5.0 - 1e-4 * y.numpy())(x.numpy())
    np.testing.assert_allclose(lessons[0][0].std(axis=0), 1.0)
    np.testing.assert_allclose(lessons[0][1].mean(), 0.0, atol=1e-6)
    np.testing.assert_allclose(said, (5.0 - 1e-4 * y.numpy()).mean(), rtol=1e-9)


def test_many_rows_are_thinned_out_for_a_process(monkeypatch):
    monkeypatch.setattr(teachers, "_MOST_ROWS", {"gp": 50})
    x, y = (part.numpy() for part in make_data(200))
    few = Taught("gp", x[::4], y[::4])
    np.testing.assert_array_equal(Taught("gp", x, y)(x), few(x))


# Where inputs come from


@pytest.mark.parametrize("rows", ["noise", "mixup", "foma", "cems", GaussianNoise(0.2, p=0.0)])
def test_every_way_makes_new_inputs(rows):
    x, y = make_data(40)
    augment = TeacherRows(LinearRegression(), rows=rows).fit(x, y)
    assert augment.offsets.shape == (40, 8, 3)
    assert augment.offsets.isfinite().all()
    # A row may be its own partner: one in eight, in a fold of eight.
    assert (augment.offsets.abs().sum(dim=2) > 0).double().mean() > 0.8


def test_noise_is_as_large_as_was_asked_for():
    x, y = make_data(200)
    augment = TeacherRows(LinearRegression(), sigma=0.3).fit(x, y)
    assert augment.offsets.std().item() == pytest.approx(0.3, rel=0.05)


def test_an_augmentation_of_its_own_stays_as_it_was_and_knows_the_blocks():
    x = torch.cat([make_data(40)[0][:, :1], torch.eye(4, dtype=torch.float64).repeat(10, 1)], dim=1)
    rows = FeatureMix(rate=0.5)
    augment = TeacherRows(LinearRegression(), rows=rows)
    augment.learn_blocks([0, 1, 1, 1, 1])
    augment.fit(x, make_data(40)[1])
    levels = (x[:, None] + augment.offsets)[:, :, 1:]
    torch.testing.assert_close(levels.sum(dim=2), torch.ones(40, 8, dtype=torch.float64))
    assert not len(rows.blocks)
    assert "FeatureMix" in repr(augment)


def test_groups_are_not_mixed_in_new_inputs():
    x, y = torch.eye(24, dtype=torch.float64), torch.arange(24.0)
    groups = ["a", "b"] * 12
    augment = TeacherRows(LinearRegression(), rows="mixup", folds=2).fit(x, y, groups=groups)
    new = x[:, None] + augment.offsets
    assert (new[::2, :, 1::2] == 0).all()
    assert (new[1::2, :, ::2] == 0).all()
    assert (augment.offsets != 0).any()


def test_few_new_rows_are_kept_where_they_would_be_too_large(monkeypatch):
    monkeypatch.setattr("regaug.augment.teacher_rows._MOST_NUMBERS", 500)
    x, y = make_data(40)
    assert TeacherRows(LinearRegression()).fit(x, y).labels.shape == (40, 3, 1)
    x, y = make_data(400)
    assert TeacherRows(LinearRegression()).fit(x, y).labels.shape == (400, 1, 1)


# In a batch


def test_every_row_becomes_one_of_its_own_new_rows():
    x, y = make_data(40)
    augment = TeacherRows(LinearRegression(), count=3).fit(x, y)
    batch = torch.tensor([5, 0, 39, 5])
    new_x, new_y = augment(x[batch], y[batch])
    for row, choice, one_x, one_y in zip(batch, augment.params.choice, new_x, new_y, strict=True):
        torch.testing.assert_close(one_x, x[row] + augment.offsets[row, choice])
        torch.testing.assert_close(one_y, augment.labels[row, choice])


def test_all_new_rows_are_drawn():
    x, y = make_data(10)
    augment = TeacherRows(LinearRegression(), count=4).fit(x, y)
    drawn = torch.stack([augment.draw(x, y).choice for _ in range(100)])
    assert (torch.bincount(drawn.flatten(), minlength=4) > 150).all()


def test_an_unknown_input_moves_as_the_nearest_training_row_does():
    x, y = make_data(40)
    augment = TeacherRows(LinearRegression()).fit(x, y)
    params = TeacherParams(torch.tensor([2, 1]))
    near = x[:2] + 1e-3
    new_x, new_y = augment.transform(near, y[:2], params)
    torch.testing.assert_close(new_x - near, augment.offsets[[0, 1], [2, 1]])
    torch.testing.assert_close(new_y, augment.labels[[0, 1], [2, 1]])
    with pytest.raises(NonFiniteError, match="`x`"):
        augment.transform(near * torch.nan, y[:2], params)


def test_a_chain_may_have_it_after_noise():
    x, y = make_data(40)
    chain = Compose(GaussianNoise(0.01), TeacherRows(LinearRegression())).fit(x, y)
    new_x, new_y = chain(x[:8], y[:8])
    assert new_x.isfinite().all()
    assert new_y.shape == (8, 1)


def test_several_targets_and_any_shape_of_inputs():
    x, y = make_data(30, d=6, m=4)
    flat = TeacherRows(LinearRegression()).fit(x, y)(x, y)
    shaped = TeacherRows(LinearRegression()).fit(x.reshape(30, 2, 3), y.reshape(30, 2, 2))
    new_x, new_y = shaped(x.reshape(30, 2, 3), y.reshape(30, 2, 2))
    torch.testing.assert_close(new_x.reshape(30, 6), flat[0])
    torch.testing.assert_close(new_y.reshape(30, 4), flat[1])


def test_half_precision_finds_its_rows():
    x, y = make_data(30, dtype=torch.float16)
    augment = TeacherRows(LinearRegression(), generator=seeded(1)).fit(x, y)
    new_x, new_y = augment(x[3:7], y[3:7])
    own = torch.arange(3, 7), augment.params.choice
    assert new_x.dtype == new_y.dtype == torch.float16
    torch.testing.assert_close(new_y, augment.labels[own].half())


def test_restated_labels_are_those_of_the_new_inputs():
    x, y = make_data(20)
    plain = TeacherRows(LinearRegression()).fit(x, y)
    told = copy.deepcopy(plain)
    told.restate(lambda x, y: (y - x.sum(1, keepdim=True)) / 2)
    new = x[:, None] + plain.offsets
    torch.testing.assert_close(told.labels, (plain.labels - new.sum(2, keepdim=True)) / 2)


def test_a_stack_that_knows_its_rows_looks_nothing_up(monkeypatch):
    x, y = make_data(20)
    runs = [TeacherRows(LinearRegression(), generator=seeded(k)).fit(x, y) for k in range(3)]
    rows = torch.tensor([[1, 2, 2], [0, 19, 7], [3, 4, 5]])
    batches = RunBatches(np.arange(3), x[rows], y[rows], rows)
    uniform = np.random.default_rng(0).random((3, 3))
    expected = TeacherRows.across(runs).transform(
        RunBatches(np.arange(3), x[rows], y[rows]), uniform
    )
    monkeypatch.setattr(TeacherRows, "_find", None)
    found = TeacherRows.across(runs).transform(batches, uniform)
    assert all(map(torch.equal, found, expected))


# Ugly rows


@pytest.mark.parametrize("teacher", ["boosting", "trees", "gp"])
@pytest.mark.parametrize("n", [2, 3, 7])
def test_fewer_rows_than_folds_are_enough(teacher, n):
    x, y = make_data(n, m=2)
    y[:, 1] = 3.0
    new_x, new_y = TeacherRows(teacher).fit(x, y)(x, y)
    assert new_x.isfinite().all()
    assert new_y.isfinite().all()
    assert (new_y[:, 1] == 3.0).all()


@pytest.mark.parametrize("n", [1, 5])
def test_where_no_two_inputs_differ_a_batch_stays_as_it_is(n):
    x, y = torch.ones(n, 3), torch.arange(float(n))
    augment = TeacherRows().fit(x, y)
    new_x, new_y = augment(x, y)
    assert new_x is x
    assert new_y is y
    assert augment.params is augment.neutral
    runs = TeacherRows.across_runs([augment, augment], torch.stack([x, x]), torch.stack([y, y]))
    assert torch.equal(runs[1], torch.stack([y, y]))


@pytest.mark.parametrize("where", ["x", "y"])
def test_rows_to_learn_from_must_be_finite(where):
    x, y = make_data(10)
    (x if where == "x" else y)[3] = torch.inf
    with pytest.raises(NonFiniteError, match=f"`{where}`"):
        TeacherRows().fit(x, y)


# Refusals and state


def test_it_must_see_the_training_rows_first():
    with pytest.raises(NotFittedError, match="call `.fit"):
        TeacherRows()(*make_data())


def test_it_acts_on_inputs_alone():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    x, y = make_data(dtype=torch.float32)
    augment = TeacherRows(LinearRegression()).fit(x, y)
    with pytest.raises(PlaceError, match="'1'. Use place='input'"):
        augment.at(net, "1")
    assert augment.at(net, "input")(x, y)[0].shape == (40, 1)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"teacher": "forest"},
            ArgumentError,
            "`teacher` must be one of 'boosting', 'trees', 'gp'",
        ),
        ({"teacher": 3}, ArgumentTypeError, "or a regressor with `fit` and `predict`, .* got int"),
        ({"teacher": LinearRegression}, ArgumentTypeError, "got LinearRegression"),
        ({"rows": "smogn"}, ArgumentError, "`rows` must be one of"),
        ({"rows": Mixup(paired=True)}, ArgumentError, "`rows` must be an augmentation whose batch"),
        ({"sigma": -0.1}, ArgumentError, "`sigma`"),
        ({"folds": 1}, ArgumentError, "`folds`"),
        ({"count": 0}, ArgumentError, "`count`"),
    ],
)
def test_what_makes_no_sense_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        TeacherRows(**options)


def test_batches_must_have_the_columns_of_the_training_rows():
    x, y = make_data()
    augment = TeacherRows(LinearRegression()).fit(x, y)
    with pytest.raises(ArgumentError, match="must have 3 and 1 columns, as in `fit`, got 2 and 1"):
        augment(x[:, :2], y)


def test_the_seed_decides_the_new_rows():
    x, y = make_data()
    one, same, other = (
        TeacherRows(LinearRegression(), rows=FOMA(), generator=seeded(seed)).fit(x, y)
        for seed in (1, 1, 2)
    )
    assert torch.equal(one.offsets, same.offsets)
    assert torch.equal(one.labels, same.labels)
    assert not torch.equal(one.offsets, other.offsets)
