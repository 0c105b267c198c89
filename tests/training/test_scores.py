import time

import numpy as np
import pytest
import torch

from regaug.data.base import Part, Split
from regaug.data.scaling import standardize
from regaug.exceptions import ArgumentError, NonFiniteError, UnknownNameError
from regaug.metrics import evaluate
from regaug.training.scores import own_targets, own_units, score_parts


def make_part(n, seed, groups=None):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=generator)
    y = (x * torch.tensor([3.0, 40.0]) + torch.tensor([0.3, 7.0])).round(decimals=1)
    y[0] = 0.0  # a target that MAPE must leave out, in whatever units
    return Part(x=x, y=y, rows=np.arange(n), groups=groups)


@pytest.fixture
def split():
    groups = np.array(["north", "south"] * 5)
    more = {"later": make_part(6, 3)}
    return Split(make_part(40, 0), make_part(8, 1), make_part(10, 2, groups), more)


def test_all_parts_but_the_training_rows_are_scored(split):
    scores, predictions, _ = score_parts(split, lambda part: part.x)
    assert list(scores) == list(predictions) == ["validation", "test", "later"]
    for name, part in zip(scores, (split.validation, split.test, split.more["later"]), strict=True):
        torch.testing.assert_close(predictions[name], part.x)
        assert scores[name] == evaluate(part.x, part.y, part.groups)
    assert set(scores["test"].groups) == {"north", "south"}


def test_the_time_of_a_row_is_told(split):
    def wait(part):
        time.sleep(0.02)
        return part.x

    seconds = score_parts(split, wait).seconds
    assert 0.02 <= seconds * len(split.test) < 1.0
    assert score_parts(split, wait, ("validation",)).seconds is None


def test_parts_can_be_chosen(split):
    scores, predictions, _ = score_parts(split, lambda part: part.x, ("train", "later"))
    assert list(scores) == list(predictions) == ["train", "later"]
    with pytest.raises(UnknownNameError, match="Did you mean 'test'"):
        score_parts(split, lambda part: part.x, ("tests",))


def test_scores_do_not_depend_on_the_scale_of_the_split(split):
    scaled = standardize(split)
    raw_scores, raw, _ = score_parts(split, lambda part: part.y + 1.0)
    step = 1.0 / torch.from_numpy(scaled.y_scaler.std)
    scores, predictions, _ = score_parts(scaled, lambda part: part.y.double() + step)
    for name, expected in raw_scores.items():
        torch.testing.assert_close(predictions[name].float(), raw[name], rtol=1e-5, atol=1e-5)
        assert scores[name].n_zero == expected.n_zero >= 2
        assert scores[name].mape == pytest.approx(expected.mape, rel=1e-4)
        assert scores[name].rmse == pytest.approx(expected.rmse, rel=1e-4)
        assert [own.rmse for own in scores[name].targets] == pytest.approx([1.0, 1.0], rel=1e-5)


def test_zero_targets_are_zero_again_after_the_way_back(split):
    scaled = standardize(split)
    assert bool((own_units(scaled, scaled.test.y)[0] != 0).all())  # why it takes a function
    found = own_targets(scaled, scaled.test)
    assert torch.equal(found == 0, split.test.y == 0)
    torch.testing.assert_close(found, split.test.y, rtol=1e-5, atol=1e-5)


def test_targets_of_a_raw_split_are_left_alone(split):
    split.test.y[1] = 1e-30
    assert torch.equal(own_targets(split, split.test), split.test.y)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_predictions_are_at_least_as_precise_as_the_targets(split, dtype, kept):
    predictions = score_parts(standardize(split), lambda part: part.y.to(dtype))[1]
    assert {value.dtype for value in predictions.values()} == {kept}


def test_predictions_keep_no_history_of_gradients(split):
    weight = torch.ones(2, requires_grad=True)
    predictions = score_parts(split, lambda part: part.x * weight)[1]
    assert not predictions["test"].requires_grad


def test_bad_predictions_are_refused(split):
    with pytest.raises(NonFiniteError, match="diverged"):
        score_parts(split, lambda part: part.x * float("nan"))
    with pytest.raises(ArgumentError, match="one shape"):
        score_parts(split, lambda part: part.x[:, :1])
