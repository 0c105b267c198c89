"""What every sampler keeps to. A new one is covered by being in the table."""

import pytest

from regaug.samplers import SAMPLERS
from regaug.testing.samplers import SAMPLER_CHECKS


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("check", SAMPLER_CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_missing(name, check):
    assert list(check(SAMPLERS[name])) == []
