"""How rows lie in space."""

import pytest
import torch

from regaug.data.scaling import Scaler
from regaug.studies.geometry import Geometry


@pytest.mark.parametrize("d", [3, 30, 400])
def test_few_long_rows_have_the_same_singular_values(d):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(20, d, generator=generator)
    y = torch.randn(20, 2, generator=generator)
    found = Geometry.of(x, y)
    joint = torch.cat([x, y], dim=1).double()
    expected = torch.linalg.svdvals(Scaler.fit(joint).transform(joint))
    assert found.singular_values == pytest.approx(expected[:60].tolist(), rel=1e-4, abs=1e-5)
    assert (found.columns, found.targets, found.n_used) == (d, 2, 20)
    assert found.n_values == min(20, d + 2)
    shares = expected.cumsum(0) / expected.sum()
    assert found.k == int((shares <= 0.9).sum())


def test_what_is_not_known_is_empty():
    nothing = Geometry(columns=5, targets=1)
    assert (nothing.singular_values, nothing.two_nn, nothing.n_used) == ((), None, 0)
