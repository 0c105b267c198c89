import math

import pytest

from regaug.metrics import METRICS
from regaug.training.results import Epoch, is_best
from regaug.training.settings import Settings

NAN, INF = math.nan, math.inf


def is_better(metric, new, old):
    """Tell whether an epoch of the error ``new`` is better than the best one before, ``old``."""
    history = [Epoch(0.5, None, value, None) for value in (old, new)]
    return is_best(history, 1, Settings(metric=metric))


def is_first(metric, new):
    history = [Epoch(0.5, None, value, None) for value in (NAN, new)]
    return is_best(history, 0, Settings(metric=metric))


def test_the_best_epoch_knows_the_direction_of_its_metric():
    assert is_better("rmse", 1.0, 2.0)
    assert not is_better("rmse", 2.0, 1.0)
    assert is_better("r2", 2.0, 1.0)
    assert not is_better("r2", 1.0, 2.0)


@pytest.mark.parametrize("metric", METRICS)
def test_an_undefined_error_is_never_the_best_and_any_number_is_better_than_none(metric):
    assert not is_better(metric, 1.0, 1.0)
    assert not is_better(metric, NAN, 1.0)
    assert not is_first(metric, NAN)
    assert is_first(metric, 1.0)
    assert is_first(metric, INF)
