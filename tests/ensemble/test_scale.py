"""Scales of targets, and the range of what may be predicted."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regaug.ensemble.scale import Bounds, TargetScale
from regaug.exceptions import ArgumentError

positive = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=9)


@given(positive, st.booleans())
def test_a_scale_has_a_way_back(values, log):
    y = torch.tensor(values, dtype=torch.float64).unsqueeze(1)
    scale = TargetScale.fit(y, log=log)
    torch.testing.assert_close(scale.inverse(scale.transform(y)), y, rtol=1e-6, atol=1e-6)


def test_what_has_no_logarithm_is_refused():
    with pytest.raises(ArgumentError, match="`log` must be False"):
        TargetScale.fit(torch.tensor([[1.0], [0.0]]), log=True)


@given(positive, st.booleans())
def test_bounds_hold_the_targets_and_as_much_beyond(values, log):
    y = torch.tensor(values, dtype=torch.float64).unsqueeze(1)
    bounds, width = Bounds.fit(y, log=log), max(values) - min(values)
    assert torch.equal(bounds.clamp(y), y)
    far = bounds.clamp(torch.tensor([[-1e9], [1e9]]).double())
    assert far[1].item() == pytest.approx(max(values) + width)
    if log:
        assert far[0] > 0
    else:
        assert far[0].item() == pytest.approx(min(values) - width, abs=1e-9)
