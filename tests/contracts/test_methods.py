"""What every method keeps to. A new one is covered by being in the table."""

import pytest

from regaug import methods
from regaug.methods import INPUT, LAYER, LAYERS
from regaug.testing.methods import METHOD_CHECKS, has_an_augmentation


@pytest.fixture(params=methods.names())
def method(request):
    return methods.get(request.param)


def cases():
    """Give every method with every check."""
    for name in methods.names():
        for check in METHOD_CHECKS:
            # A teacher learns from many small tables: a quick one is among the augmentations.
            is_slow = methods.get(name).teachers and check is has_an_augmentation
            marks = [pytest.mark.slow] if is_slow else []
            yield pytest.param(name, check, marks=marks, id=f"{check.__name__}-{name}")


@pytest.mark.parametrize(("name", "check"), list(cases()))
def test_nothing_is_missing(name, check):
    assert list(check(methods.get(name))) == []


def test_it_acts_where_any_network_can_be_told_to(method):
    assert method.defaults["place"] in (INPUT, LAYER, LAYERS)


def test_unknown_settings_get_a_suggestion(method):
    with pytest.raises(LookupError, match="Unknown setting 'plaze'. Did you mean 'place'"):
        method.settings(plaze="input")
