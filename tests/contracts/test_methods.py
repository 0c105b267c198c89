"""What every method keeps to. A new one is covered by being in the table."""

import pytest

from regaug import methods
from regaug.methods import INPUT, LAYER, LAYERS
from regaug.testing.methods import METHOD_CHECKS


@pytest.fixture(params=methods.names())
def method(request):
    return methods.get(request.param)


@pytest.mark.parametrize("check", METHOD_CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_missing(method, check):
    assert list(check(method)) == []


def test_it_acts_where_any_network_can_be_told_to(method):
    assert method.defaults["place"] in (INPUT, LAYER, LAYERS)


def test_unknown_settings_get_a_suggestion(method):
    with pytest.raises(LookupError, match="Unknown setting 'plaze'. Did you mean 'place'"):
        method.settings(plaze="input")
