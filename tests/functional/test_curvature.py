"""CEMS as a function: against a slow version, closed forms, known surfaces, ugly batches."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError
from regaug.functional import curvature, foma, quadratic
from regaug.functional.curvature import cems
from regaug.samplers import NearestBatchSampler


def make_batch(n, d_x, m, d, seed, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(n, k, generator=generator, dtype=torch.float64).to(dtype) for k in (d_x, m, d)
    ]


def cat(pair):
    return torch.cat(pair, dim=-1)


class Systems(TorchFunctionMode):
    """Note the shapes of the linear systems that are solved."""

    def __init__(self):
        super().__init__()
        self.shapes = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.linalg.cholesky:
            self.shapes.append(tuple(args[0].shape))
        return function(*args, **(kwargs or {}))


batches = st.builds(
    make_batch,
    n=st.integers(2, 12),
    d_x=st.integers(1, 6),
    m=st.integers(1, 2),
    d=st.integers(1, 4),
    seed=st.integers(0, 999),
)


# Reference: one point at a time, with g and H written out.


def slow_cems(z, eta, neighborhoods, ridge, order):
    return np.stack(
        [
            slow_point(point, step, rows, ridge, order)
            for point, step, rows in zip(z, eta, neighborhoods, strict=True)
        ]
    )


def slow_point(z, eta, rows, ridge, order):
    s, vh = np.linalg.svd(rows - rows.mean(0), full_matrices=True)[1:]
    d = min(len(eta), int((s > 1e-6 * s[0]).sum()))
    eta, basis = eta[:d], vh.T  # (r, r): the first d columns are tangent, the others normal
    for column in basis.T:
        column *= np.sign(column[np.abs(column).argmax()])
    coordinates = (rows - z) @ basis
    u, v = coordinates[:, :d], coordinates[:, d:]
    pairs = [(a, b) for a in range(d) for b in range(a, d)] if order == 2 else []
    features = np.column_stack([u] + [u[:, a] * u[:, b] for a, b in pairs])
    size = np.mean(np.sum(u**2, axis=1))
    penalty = len(rows) * ridge * np.array([size] * d + [size**2] * len(pairs))
    # Normal equations (F^T F + P) c = F^T v, in units in which P is a multiple of the identity.
    root = np.sqrt(penalty / (len(rows) * ridge))
    scaled = features / root
    gram = scaled.T @ scaled + len(rows) * ridge * np.eye(len(root))
    coefficients = np.linalg.solve(gram, scaled.T @ v) / root[:, None]
    g, hessian = coefficients[:d].T, np.zeros((v.shape[1], d, d))
    for row, (a, b) in zip(coefficients[d:], pairs, strict=True):
        hessian[:, a, b] += row
        hessian[:, b, a] += row
    f = g @ eta + 0.5 * np.einsum("a,kab,b->k", eta, hessian, eta)
    return z + basis @ np.concatenate([eta, f])


@given(batches, st.sampled_from([1e-6, 1e-3, 1.0]), st.sampled_from([1, 2]))
def test_batch_as_its_own_neighborhood_agrees_with_the_slow_version(batch, ridge, order):
    x, y, eta = batch
    z = cat([x, y])
    expected = slow_cems(z.numpy(), eta.numpy(), [z.numpy()] * len(z), ridge, order)
    new = cat(cems(x, y, eta=eta, ridge=ridge, order=order))
    np.testing.assert_allclose(new, expected, rtol=1e-6, atol=1e-6)


@given(batches, st.integers(2, 15), st.sampled_from([1, 2]))
def test_stored_neighborhoods_agree_with_the_slow_version(batch, q, order):
    x, y, eta = batch
    z = cat([x, y])
    generator = torch.Generator().manual_seed(q)
    rows = z[:, None] + torch.randn(len(z), q, z.shape[1], generator=generator, dtype=z.dtype)
    expected = slow_cems(z.numpy(), eta.numpy(), rows.numpy(), 1e-3, order)
    new = cat(cems(x, y, eta=eta, neighborhoods=rows, order=order))
    np.testing.assert_allclose(new, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("q", "d"), [(40, 2), (10, 3), (9, 3), (5, 5)])
def test_the_two_forms_of_ridge_regression_agree(q, d):
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(3, q, d, generator=generator, dtype=torch.float64)
    u = u / u.square().sum(-1, keepdim=True).mean(-2, keepdim=True).sqrt()
    eta = torch.randn(3, d, generator=generator, dtype=torch.float64)
    features, at_eta = quadratic.features(u, 2), quadratic.features(eta[:, None], 2)
    gram = features.mT @ features + q * 1e-2 * torch.eye(features.shape[-1], dtype=u.dtype)
    expected = (features @ torch.linalg.solve(gram, at_eta.mT)).squeeze(-1)
    torch.testing.assert_close(quadratic.weights(u, eta, 1e-2, 2), expected)


@pytest.mark.parametrize(("q", "d"), [(40, 2), (10, 3), (9, 3), (5, 5), (4, 6), (2, 1)])
def test_sheets_that_are_fitted_once_give_what_every_call_finds(q, d):
    generator = torch.Generator().manual_seed(q)
    points = torch.randn(12, 6, generator=generator, dtype=torch.float64)
    rows = points[:, None] + 0.5 * torch.randn(12, q, 6, generator=generator, dtype=torch.float64)
    rows[3] = rows[3, :1]  # no extent at all
    sheets = curvature.fit_sheets(points, rows, d, 1e-3)
    for scale in (0.0, 0.3):
        eta = scale * torch.randn(12, d, generator=generator, dtype=torch.float64)
        expected = cat(cems(points[:, :5], points[:, 5:], eta=eta, neighborhoods=rows))
        torch.testing.assert_close(points + sheets.offsets(eta), expected, rtol=0, atol=1e-10)
        some = torch.tensor([7, 3])
        torch.testing.assert_close(sheets[some].offsets(eta[some]), sheets.offsets(eta)[some])


@pytest.mark.parametrize(("q", "d", "order", "side"), [(40, 2, 2, 5), (4, 3, 2, 4), (9, 3, 1, 3)])
def test_the_smaller_system_is_solved(q, d, order, side):
    x, y, eta = make_batch(q, 5, 1, d, seed=0)
    with Systems() as systems:
        cems(x, y, eta=eta, order=order)
    assert systems.shapes == [(q, side, side)]  # all points in one call


# Properties.


@given(batches, st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]))
def test_eta_zero_is_the_identity(batch, dtype):
    x, y = (tensor.to(dtype) for tensor in batch[:2])
    new_x, new_y = cems(x, y, eta=torch.zeros_like(batch[2]))
    assert torch.equal(new_x, x)
    assert torch.equal(new_y, y)
    assert new_x.dtype == new_y.dtype == dtype


@given(batches)
def test_the_gradient_is_that_of_the_point(batch):
    x, y = (tensor.requires_grad_() for tensor in batch[:2])
    weights = torch.arange(1.0, 1 + x.numel() + y.numel()).reshape(len(x), -1).double()
    (cat(cems(x, y, eta=batch[2])) * weights).sum().backward()
    assert torch.equal(cat([x.grad, y.grad]), weights)


@pytest.mark.filterwarnings("ignore:.torch.jit.script")  # of torch's own making
def test_the_forward_derivative_is_that_of_the_point_too():
    x, y = torch.randn(2, 9, 3, generator=torch.Generator().manual_seed(0)).double().split(2, -1)
    eta = torch.full((2, 9, 2), 0.1)
    along = (x.sin(), y.cos())
    new = torch.func.jvp(lambda x, y: cems(x, y, eta=eta), (x, y), along)[1]
    torch.testing.assert_close(new, along, rtol=0, atol=0)


@given(batches)
def test_order_of_samples_does_not_matter(batch):
    new = cat(cems(*batch[:2], eta=batch[2]))
    x, y, eta = (tensor.flip(0) for tensor in batch)
    torch.testing.assert_close(cat(cems(x, y, eta=eta)).flip(0), new, rtol=1e-6, atol=1e-6)


@given(batches, st.sampled_from([1e-12, 1e-6, 1e6, 1e12]))
def test_units_do_not_matter(batch, scale):
    x, y, eta = batch
    new = cat(cems(scale * x, scale * y, eta=scale * eta)) / scale
    torch.testing.assert_close(new, cat(cems(x, y, eta=eta)), rtol=1e-6, atol=1e-6)


@given(batches)
def test_moving_the_origin_moves_the_samples(batch):
    x, y, eta = batch
    moved = cat(cems(x + 100.0, y - 50.0, eta=eta))
    expected = cat([new + by for new, by in zip(cems(x, y, eta=eta), (100.0, -50.0), strict=True)])
    torch.testing.assert_close(moved, expected, rtol=1e-6, atol=1e-6)


@given(batches)
def test_the_caller_s_tensors_are_not_changed(batch):
    before = [tensor.clone() for tensor in batch]
    cems(*batch[:2], eta=batch[2])
    assert all(torch.equal(old, new) for old, new in zip(before, batch, strict=True))


@pytest.mark.parametrize("stored", [False, True])
def test_a_stack_equals_its_batches_one_by_one(stored):
    singles = [make_batch(7, 4, 2, 2, seed) for seed in range(6)]
    x, y, eta = (torch.stack(parts).reshape(2, 3, 7, -1) for parts in zip(*singles, strict=True))
    rows = cat([x, y]).unsqueeze(-3).expand(2, 3, 7, 7, 6) if stored else None
    new = cat(cems(x, y, eta=eta, neighborhoods=rows))
    for one, single in zip(new.reshape(6, 7, 6), singles, strict=True):
        torch.testing.assert_close(one, cat(cems(*single[:2], eta=single[2])))


def test_systems_too_large_for_memory_are_solved_in_blocks():
    x, y, eta = make_batch(11, 3, 1, 2, seed=0)
    whole = cat(cems(x, y, eta=eta))
    with Systems() as systems:
        in_blocks = cat(cems(x, y, eta=eta, block=4 * 11 * 11))
    torch.testing.assert_close(in_blocks, whole)
    assert [shape[0] for shape in systems.shapes] == [4, 4, 3]


def test_half_precision_is_computed_in_more():
    x, y, eta = make_batch(12, 3, 1, 2, seed=0)
    x, y = x.half(), y.bfloat16()
    new_x, new_y = cems(x, y, eta=eta)
    exact_x, exact_y = cems(x.double(), y.double(), eta=eta)
    assert torch.equal(new_x, exact_x.half())
    assert torch.equal(new_y, exact_y.bfloat16())


# Closed forms.


def grid(side):
    t = torch.linspace(-1, 1, side, dtype=torch.float64)
    return torch.cartesian_prod(t, t)


def test_a_quadric_over_its_tangent_plane_is_followed_exactly():
    x = grid(7)

    def height(x):
        return 0.4 * x[:, :1] ** 2 - 0.3 * x[:, 1:] ** 2 + 0.2 * x[:, :1] * x[:, 1:]

    eta = 0.5 * make_batch(49, 1, 1, 2, seed=0)[2]
    new_x, new_y = cems(x, height(x), eta=eta, ridge=1e-9)
    assert (new_x - x).norm(dim=1).mean() > 0.3
    torch.testing.assert_close(new_y, height(new_x), rtol=0, atol=1e-7)
    flat_x, flat_y = cems(x, height(x), eta=eta, ridge=1e-9, order=1)
    assert (flat_y - height(flat_x)).abs().mean() > 1e-2


@pytest.mark.parametrize(("order", "expected"), [(1, 2.0), (2, 3.0)])
def test_the_distance_to_a_paraboloid_falls_with_a_power_of_the_step(order, expected):
    steps, near = make_batch(200, 1, 1, 2, seed=0)[2], make_batch(200 * 20, 1, 1, 2, seed=1)[2]
    center = torch.tensor([[0.3, -0.2]], dtype=torch.float64).expand(200, 2)

    def distance(size):
        rows = center[:, None] + size * near.reshape(200, 20, 2)
        rows = cat([rows, rows.square().sum(-1, keepdim=True)])
        y = center.square().sum(-1, keepdim=True)
        new = cems(center, y, eta=size * steps, ridge=1e-9, neighborhoods=rows, order=order)
        return to_paraboloid(cat(new)).mean().item()

    power = math.log2(distance(0.04) / distance(0.02))
    assert abs(power - expected) < 0.2, f"error falls with the power {power:.2f} of the step"


def test_a_direction_without_extent_is_ignored():
    x = torch.linspace(-1, 1, 9, dtype=torch.float64)[:, None]
    x = torch.cat([x, torch.zeros_like(x)], dim=1)
    y = 0.5 * x[:, :1] ** 2
    eta = make_batch(9, 1, 1, 3, seed=0)[2]
    new_x, _ = cems(x, y, eta=eta)
    assert torch.equal(new_x[:, 1], x[:, 1])


# Known surfaces: how far from them do new samples lie?


def to_polyline(points, line):
    """Distance of points in the plane to the nearest of the segments between a line's vertices."""
    nearest = torch.cdist(points, line).argmin(1).clamp(1, len(line) - 2)
    found = []
    for start in (nearest - 1, nearest):
        a, b = line[start], line[start + 1]
        along = ((points - a) * (b - a)).sum(1) / (b - a).square().sum(1)
        found.append((points - a - along.clamp(0, 1)[:, None] * (b - a)).norm(dim=1))
    return torch.minimum(*found)


def to_sine(points):
    t = torch.linspace(-2, 2 * math.pi + 2, 4000, dtype=torch.float64)
    return to_polyline(points, torch.stack([t, t.sin()], dim=1))


def to_unit_sphere(points):
    return (points.norm(dim=1) - 1).abs()


def to_paraboloid(points):
    t = torch.linspace(0, 3, 4000, dtype=torch.float64)
    profile = torch.stack([t, t.square()], dim=1)
    return to_polyline(torch.stack([points[:, :2].norm(dim=1), points[:, 2]], dim=1), profile)


def make_surface(name, n=300):
    generator = torch.Generator().manual_seed(0)
    t = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    angle = 2 * math.pi * t[:, :1]
    if name == "sine":
        return angle, angle.sin(), 1, to_sine
    if name == "circle":
        return angle.cos(), angle.sin(), 1, to_unit_sphere
    if name == "sphere":
        height = 2 * t[:, 1:] - 1
        radius = (1 - height.square()).sqrt()
        return radius * cat([angle.cos(), angle.sin()]), height, 2, to_unit_sphere
    x = 2 * t - 1
    return x, x.square().sum(1, keepdim=True), 2, to_paraboloid


def at_displacement(target, make):
    """Return ``make(sigma)`` for the sigma at which rows move by ``target`` on average."""
    low, high = 0.0, 2.0
    for _ in range(25):
        sigma = (low + high) / 2
        low, high = (sigma, high) if make(sigma)[1] < target else (low, sigma)
    return make(sigma)[0]


@pytest.mark.parametrize("batches", ["near in target", "near in joint space"])
@pytest.mark.parametrize("name", ["sine", "circle", "sphere", "paraboloid"])
def test_new_samples_lie_nearer_to_the_surface_than_others_at_equal_spread(name, batches):
    x, y, d, distance = make_surface(name)
    z = cat([x, y])
    n, q = len(z), 16
    neighborhoods = z[torch.cdist(z, z).topk(q, largest=False).indices]
    generator = torch.Generator().manual_seed(1)
    lam = torch.rand(n, generator=generator, dtype=torch.float64)
    eta = torch.randn(n, d, generator=generator, dtype=torch.float64)
    if batches == "near in target":  # FOMA as the library trains with it
        by_foma = torch.empty_like(z)
        for i, batch in enumerate(NearestBatchSampler(y, q)):
            by_foma[batch] = cat(foma(x[batch], y[batch], lam=lam[i].item(), k=d))
    else:  # and with the neighborhoods that CEMS has; the point itself comes first
        new = foma(neighborhoods[..., :-1], neighborhoods[..., -1:], lam=lam, k=d)
        by_foma = cat(new)[:, 0]
    spread = (by_foma - z).norm(dim=1).mean().item()

    def by_cems(order):
        def make(sigma):
            new = cat(cems(x, y, eta=sigma * eta, neighborhoods=neighborhoods, order=order))
            return new, (new - z).norm(dim=1).mean().item()

        return at_displacement(spread, make)

    figures = {
        "FOMA": distance(by_foma).mean().item(),
        "first order": distance(by_cems(1)).mean().item(),
        "CEMS": distance(by_cems(2)).mean().item(),
    }
    line = ", ".join(f"{method} {figure:.2e}" for method, figure in figures.items())
    print(f"{name}, batches {batches}, mean displacement {spread:.4f}: mean distance {line}")
    assert figures["CEMS"] < 0.5 * figures["FOMA"], line
    assert figures["CEMS"] < 0.7 * figures["first order"], line


# Ugly batches.


def ugly(n, d_x, kind):
    x, y, _ = make_batch(n, d_x, 1, 1, seed=3)
    if kind == "equal rows":
        x, y = x[:1].expand_as(x) * 0.1, y[:1].expand_as(y) * 0.7
    if kind == "zero columns":
        x = x * (torch.arange(d_x) % 2)
    if kind == "all zero":
        x, y = 0 * x, 0 * y
    if kind == "rank one":
        x, y = torch.outer(y[:, 0], x[0]), 2 * y
    if kind == "repeated rows":
        x, y = x[torch.arange(n) // 2], y[torch.arange(n) // 2]
    return x, y


KINDS = ["random", "equal rows", "zero columns", "all zero", "rank one", "repeated rows"]


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d_x"), [(1, 3), (2, 1), (5, 30), (24, 4)])
def test_ugly_batches_give_finite_samples_and_gradients(n, d_x, kind, scale, stored):
    for dtype in (torch.float32, torch.float64):
        x, y = ((scale * tensor).to(dtype).requires_grad_() for tensor in ugly(n, d_x, kind))
        z = cat([x, y]).detach()
        for d in (1, 3, n, 40):
            eta = 0.1 * make_batch(n, 1, 1, d, seed=d)[2]
            rows = z.expand(n, n, -1) if stored else None
            for ridge in (1e-9, 1e-3):
                new = cat(cems(x, y, eta=eta, ridge=ridge, neighborhoods=rows))
                assert new.isfinite().all(), (dtype, d, ridge)
        gradients = torch.autograd.grad(new.sum(), (x, y))
        assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_equal_rows_stay_where_they_are(n):
    x, y = ugly(n, 4, "equal rows")
    new_x, new_y = cems(x, y, eta=torch.ones(n, 2))
    assert torch.equal(new_x, x)
    assert torch.equal(new_y, y)


def test_float16_stops_at_the_end_of_its_range():
    x = torch.tensor([[0.0], [60000.0], [-60000.0], [100.0]], dtype=torch.float16)
    new_x, new_y = cems(x, x.clone(), eta=torch.full((4, 1), 1e5))
    assert new_x.isfinite().all()
    assert new_y.isfinite().all()
    assert new_x.abs().max() == 65504


# Errors.


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"ridge": 0.0}, ArgumentError, "`ridge` must be at least 1e-09, got 0.0"),
        ({"order": 3}, ArgumentError, "`order` must be one of 1, 2, got 3"),
        ({"eta": torch.zeros(4, 2)}, ArgumentError, "`eta` must be .* a step for every row"),
        ({"eta": torch.zeros(5, 2).long()}, ArgumentTypeError, "`eta` must hold floating"),
        ({"eta": torch.full((5, 2), math.nan)}, NonFiniteError, "`eta` must be finite"),
        ({"neighborhoods": torch.zeros(5, 4)}, ArgumentError, r"here \(5, q, 4\), got \(5, 4\)"),
        ({"neighborhoods": torch.zeros(5, 9, 3)}, ArgumentError, "`neighborhoods` must be"),
        ({"neighborhoods": torch.zeros(5, 0, 4)}, ArgumentError, "at least one joint row"),
        ({"neighborhoods": torch.full((5, 2, 4), math.inf)}, NonFiniteError, "`neighborhoods`"),
    ],
)
def test_wrong_arguments_are_named(change, error, message):
    x, y, eta = make_batch(5, 3, 1, 2, seed=0)
    with pytest.raises(error, match=message):
        cems(x, y, **{"eta": eta, **change})


def test_empty_and_non_finite_batches_are_named():
    with pytest.raises(ArgumentError, match="must not be empty"):
        cems(torch.zeros(0, 3), torch.zeros(0, 1), eta=torch.zeros(0, 1))
    with pytest.raises(NonFiniteError, match=r"`y` must be finite, got nan at index \(1, 0\)"):
        cems(torch.zeros(2, 3), torch.tensor([[0.0], [math.nan]]), eta=torch.zeros(2, 1))


def test_no_tangent_directions_means_no_change():
    x, y, _ = make_batch(5, 3, 1, 1, seed=0)
    assert cems(x, y, eta=torch.zeros(5, 0)) == (x, y)
