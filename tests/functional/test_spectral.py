"""The spectral kernel against a float64 SVD, closed forms, finite differences and ugly batches."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import forward_ad, gradcheck

from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError, RegaugError
from regaug.functional import rank_at_share, scale_singular_values
from regaug.functional.decomposition import decompose

SCALES = ("trailing", "leading")
SHAPES = [(3, 7), (7, 3), (5, 5), (1, 4), (4, 1), (1, 1), (32, 6), (32, 129), (16, 60)]


def by_svd(a, lam, k, scale="trailing"):
    """The textbook way, in float64."""
    u, s, vh = torch.linalg.svd(a.double(), full_matrices=False)
    is_scaled = torch.arange(len(s)) >= k if scale == "trailing" else torch.arange(len(s)) < k
    return u @ torch.diag(torch.where(is_scaled, lam * s, s)) @ vh


def make_matrix(n, r, singular_values, seed=0, dtype=torch.float64):
    """A matrix with given singular values and random directions."""
    generator = torch.Generator().manual_seed(seed)
    rank = min(n, r)
    left = torch.linalg.qr(torch.randn(n, rank, generator=generator, dtype=torch.float64)).Q
    right = torch.linalg.qr(torch.randn(r, rank, generator=generator, dtype=torch.float64)).Q
    values = torch.as_tensor(singular_values, dtype=torch.float64)
    return (left * values @ right.mT).to(dtype)


def spectrum_with_gap(rank, k, condition, seed, gap=1e-3):
    """Random values from 1 down to 1 / condition, with the given relative gap after the k-th."""
    generator = torch.Generator().manual_seed(seed)
    exponents = torch.rand(rank, generator=generator, dtype=torch.float64).sort().values
    exponents[0] = 0.0
    exponents[-1] = 1.0 if rank > 1 else 0.0
    values = condition**-exponents
    if 0 < k < rank:
        values[k:] = values[k:].clamp(max=float(values[k - 1]) * (1 - gap))
    return values.sort(descending=True).values


def relative_error(new, reference, a):
    return ((new.double() - reference).norm() / a.double().norm()).item()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-4), (torch.float64, 1e-9)])
def test_agrees_with_a_float64_svd_for_every_cut(shape, scale, dtype, bound):
    rank = min(shape)
    for k in range(rank + 1):
        for seed, condition in enumerate((1.0, 1e3, 1e5)):
            values = spectrum_with_gap(rank, k, condition, seed)
            a = make_matrix(*shape, values, seed, dtype)
            new = scale_singular_values(a, lam=0.3, k=k, scale=scale)
            assert relative_error(new, by_svd(a, 0.3, k, scale), a) <= bound


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-4), (torch.float64, 1e-9)])
@pytest.mark.parametrize("edge", [0.4, 1e-1, 1e-2, 1e-3, 1e-4, 4e-5])
def test_agrees_when_the_narrow_gap_is_far_down_the_spectrum(dtype, bound, edge):
    # Where the cut lies decides how hard it is: the Gram matrix sees edge**2.
    for seed in range(20):
        values = [1.0, 0.5, edge, edge * (1 - 1e-3), edge * 0.5, edge * 0.25]
        a = make_matrix(40, 6, values, seed, dtype)
        new = scale_singular_values(a, lam=0.0, k=3)
        assert relative_error(new, by_svd(a, 0.0, 3), a) <= bound


@given(
    n=st.integers(1, 9),
    r=st.integers(1, 9),
    lam=st.floats(0.0, 3.0),
    share=st.floats(0.0, 1.0),
    scale=st.sampled_from(SCALES),
    seed=st.integers(0, 999),
)
def test_agrees_with_a_float64_svd_on_random_matrices(n, r, lam, share, scale, seed):
    k = round(share * min(n, r))
    values = spectrum_with_gap(min(n, r), k, 1e5, seed)
    a = make_matrix(n, r, values, seed)
    reference = by_svd(a, lam, k, scale)
    assert relative_error(scale_singular_values(a, lam=lam, k=k, scale=scale), reference, a) < 1e-9


@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (6, 6)])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("gradient", ["exact", "frozen"])
def test_a_stack_equals_one_by_one(shape, scale, gradient):
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(2, 3, *shape, generator=generator, dtype=torch.float64)
    weights = torch.randn(a.shape, generator=generator, dtype=torch.float64)
    lam = torch.rand(2, 3, generator=generator, dtype=torch.float64)
    k = torch.tensor([[0, 1, 2], [3, 4, 1]])
    stack = a.clone().requires_grad_()
    new = scale_singular_values(stack, lam=lam, k=k, scale=scale, gradient=gradient)
    (new * weights).sum().backward()
    for i in range(2):
        for j in range(3):
            one = a[i, j].clone().requires_grad_()
            each = scale_singular_values(
                one, lam=lam[i, j].item(), k=int(k[i, j]), scale=scale, gradient=gradient
            )
            (each * weights[i, j]).sum().backward()
            torch.testing.assert_close(new[i, j], each, rtol=1e-10, atol=1e-10)
            torch.testing.assert_close(stack.grad[i, j], one.grad, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("k", [0, 2, 4])
def test_one_number_serves_a_whole_stack(k):
    a = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    shared, each = a.clone().requires_grad_(), a.clone().requires_grad_()
    one = scale_singular_values(shared, lam=0.5, k=k)
    many = scale_singular_values(each, lam=torch.full((3,), 0.5), k=torch.full((3,), k))
    torch.testing.assert_close(one, many)
    one.square().sum().backward()
    many.square().sum().backward()
    torch.testing.assert_close(shared.grad, each.grad)


def test_a_tensor_without_axes_serves_one_matrix():
    a = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    number, tensor = a.clone().requires_grad_(), a.clone().requires_grad_()
    one = scale_singular_values(number, lam=0.5, k=2)
    other = scale_singular_values(tensor, lam=torch.tensor(0.5), k=torch.tensor(2))
    torch.testing.assert_close(one, other)
    one.square().sum().backward()
    other.square().sum().backward()
    torch.testing.assert_close(number.grad, tensor.grad)


@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (5, 5)])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("k", [0, 1, 3, 4])
def test_gradient_matches_finite_differences(shape, scale, k):
    a = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    function = partial(scale_singular_values, lam=0.3, k=k, scale=scale)
    assert gradcheck(function, (a.requires_grad_(),))


def test_gradient_of_a_stack_matches_finite_differences():
    a = torch.randn(2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    lam, k = torch.tensor([0.2, 1.7], dtype=torch.float64), torch.tensor([1, 2])
    assert gradcheck(partial(scale_singular_values, lam=lam, k=k), (a.requires_grad_(),))


@pytest.mark.parametrize("shape", [(20, 8), (8, 20), (12, 12)])
@pytest.mark.parametrize("scale", SCALES)
def test_gradient_agrees_with_autograd_through_a_float64_svd(shape, scale):
    for seed in range(10):
        rank = min(shape)
        values = torch.logspace(0, -3, rank, dtype=torch.float64)
        a = make_matrix(*shape, values, seed).requires_grad_()
        weights = torch.randn(shape, dtype=torch.float64)
        for k in range(rank + 1):
            (reference,) = torch.autograd.grad((by_svd(a, 0.3, k, scale) * weights).sum(), a)
            new = scale_singular_values(a, lam=0.3, k=k, scale=scale)
            (gradient,) = torch.autograd.grad((new * weights).sum(), a)
            assert (gradient - reference).norm() <= 1e-6 * reference.norm()


@pytest.mark.parametrize("shape", [(20, 8), (8, 20), (3, 20, 8)])
def test_gradient_in_float32_has_the_accuracy_of_float32(shape):
    for seed in range(10):
        values = torch.logspace(0, -3, 8, dtype=torch.float64)
        matrices = [make_matrix(*shape[-2:], values, seed + i) for i in range(3)]
        a = torch.stack(matrices) if len(shape) == 3 else matrices[0]
        weights = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
        for k in range(9):
            exact, rounded = a.float().double().requires_grad_(), a.float().requires_grad_()
            (scale_singular_values(exact, lam=0.3, k=k) * weights).sum().backward()
            (scale_singular_values(rounded, lam=0.3, k=k) * weights).sum().backward()
            assert (rounded.grad - exact.grad).norm() <= 1e-4 * exact.grad.norm()


def test_frozen_gradient_treats_the_directions_as_constants():
    a = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    v = torch.linalg.svd(a).Vh[:2].mT  # leading directions
    weights = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    leaf = a.clone().requires_grad_()
    (scale_singular_values(leaf, lam=0.3, k=2, gradient="frozen") * weights).sum().backward()
    expected = 0.3 * weights + 0.7 * weights @ v @ v.mT
    torch.testing.assert_close(leaf.grad, expected)


def degenerate_batches(count):
    """Batches of the kinds that make the gradient of an SVD fail, at all magnitudes."""
    for seed in range(count):
        generator = torch.Generator().manual_seed(seed)
        n, r = (int(torch.randint(1, 12, (), generator=generator)) for _ in range(2))
        kind = seed % 6
        if kind == 5:
            n = 1
        a = torch.randn(n, r, generator=generator)
        if kind == 0:
            a[:, : r // 2 + 1] = 0.0
        elif kind == 1:
            a[:] = a[0].clone()
        elif kind == 2:
            a = torch.outer(a[:, 0], a[0])
        elif kind == 3:  # dead units behind a ReLU
            a = torch.relu(a @ torch.randn(r, r, generator=generator) - 2.0)
        elif kind == 4:  # equal singular values, across the cut too
            a = torch.eye(max(n, r))[:n, :r]
        a = a * 10.0 ** float(torch.randint(-12, 13, (), generator=generator))
        k = int(torch.randint(0, min(n, r) + 1, (), generator=generator))
        yield a.double() if seed % 2 else a, k, SCALES[seed // 2 % 2]


def test_thousand_degenerate_batches_are_finite(capsys):
    failures = 0
    for a, k, scale in degenerate_batches(1000):
        leaf = a.clone().requires_grad_()
        new = scale_singular_values(leaf, lam=0.3, k=k, scale=scale)
        new.square().sum().backward()
        assert new.isfinite().all(), (a, k, scale)
        assert leaf.grad.isfinite().all(), (a, k, scale)
        leaf = a.clone().requires_grad_()
        try:
            by_svd(leaf, 0.3, k, scale).square().sum().backward()
            failures += not leaf.grad.isfinite().all()
        except torch.linalg.LinAlgError:
            failures += 1
    with capsys.disabled():
        print(f"\n[gradient on 1000 degenerate batches: not finite 0 here, {failures} by SVD]")
    assert failures > 100


@pytest.mark.parametrize("magnitude", [1e-30, 1e-12, 1.0, 1e12, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_magnitude_changes_nothing_but_the_magnitude(magnitude, dtype):
    a = torch.randn(6, 9, generator=torch.Generator().manual_seed(0), dtype=dtype)
    reference = scale_singular_values(a, lam=0.3, k=3)
    new = scale_singular_values(a * magnitude, lam=0.3, k=3) / magnitude
    torch.testing.assert_close(new, reference)
    leaf = (a * magnitude).requires_grad_()
    scale_singular_values(leaf, lam=0.3, k=3).sum().backward()
    plain = a.clone().requires_grad_()
    scale_singular_values(plain, lam=0.3, k=3).sum().backward()
    torch.testing.assert_close(leaf.grad, plain.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("magnitude", [1e-200, 1e200])
def test_float64_magnitudes_whose_squares_do_not_fit(magnitude):
    a = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    new = scale_singular_values(a * magnitude, lam=0.3, k=2) / magnitude
    torch.testing.assert_close(new, scale_singular_values(a, lam=0.3, k=2))


def test_gradient_is_bounded_when_the_gap_across_the_cut_closes():
    for gap in (1e-1, 1e-4, 1e-8, 1e-16, 0.0):
        a = make_matrix(8, 3, [1.0, 1.0 - gap, 0.1]).requires_grad_()
        scale_singular_values(a, lam=0.0, k=1).sum().backward()
        assert a.grad.isfinite().all()
        assert a.grad.abs().max() < 1e7


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    a = torch.randn(12, 5, generator=torch.Generator().manual_seed(0)).to(dtype).requires_grad_()
    new = scale_singular_values(a, lam=0.3, k=2)
    new.float().sum().backward()
    assert new.dtype == a.grad.dtype == dtype
    torch.testing.assert_close(new, by_svd(a.detach(), 0.3, 2).to(dtype))


def test_float16_stops_at_its_largest_number():
    a = torch.full((2, 4), 60000.0, dtype=torch.float16)
    a[1] *= -0.5
    a.requires_grad_()
    new = scale_singular_values(a, lam=3.0, k=0)
    new.sum().backward()
    assert new.isfinite().all()
    assert a.grad.isfinite().all()


def test_autocast_does_not_lower_the_precision():
    a = torch.randn(16, 40, generator=torch.Generator().manual_seed(0)).requires_grad_()
    plain = scale_singular_values(a, lam=0.3, k=4)
    (expected,) = torch.autograd.grad(plain.sum(), a)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        new = scale_singular_values(a, lam=0.3, k=4)
        (gradient,) = torch.autograd.grad(new.sum(), a)
    assert new.dtype == torch.float32
    torch.testing.assert_close(new, plain, rtol=0, atol=0)
    torch.testing.assert_close(gradient, expected, rtol=0, atol=0)


def test_no_grad_and_inference_mode_give_the_same_values():
    a = torch.randn(5, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
    expected = scale_singular_values(a, lam=0.3, k=2).detach()
    with torch.no_grad():
        new = scale_singular_values(a, lam=0.3, k=2)
    assert not new.requires_grad
    torch.testing.assert_close(new, expected)
    with torch.inference_mode():
        torch.testing.assert_close(scale_singular_values(a, lam=0.3, k=2), expected)


@pytest.mark.filterwarnings("ignore")  # of the compiler's own making
@pytest.mark.parametrize("gradient", ["exact", "frozen"])
def test_compiled_function_gives_the_same_values_and_gradients(gradient):
    def loss(a):
        new = scale_singular_values(torch.relu(a), lam=0.3, k=2, gradient=gradient)
        return new.square().sum() + new[0, 0]

    a = torch.randn(9, 6, generator=torch.Generator().manual_seed(0))
    plain, compiled = a.clone().requires_grad_(), a.clone().requires_grad_()
    expected = loss(plain)
    expected.backward()
    new = torch.compile(loss, backend="aot_eager")(compiled)
    new.backward()
    torch.testing.assert_close(new, expected)
    torch.testing.assert_close(compiled.grad, plain.grad)


def test_the_callers_tensor_is_not_changed():
    a = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    before = a.clone()
    scale_singular_values(a, lam=0.0, k=1)
    assert torch.equal(a, before)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_a_factor_of_one_changes_nothing(shape):
    a = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    for scale in SCALES:
        torch.testing.assert_close(
            scale_singular_values(a, lam=1.0, k=2, scale=scale), a, rtol=0, atol=1e-6
        )


def test_cut_at_either_end_scales_everything_or_nothing():
    a = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(scale_singular_values(a, lam=0.5, k=0), 0.5 * a)
    torch.testing.assert_close(scale_singular_values(a, lam=0.5, k=4), a)
    torch.testing.assert_close(scale_singular_values(a, lam=0.5, k=4, scale="leading"), 0.5 * a)


def test_a_factor_of_zero_leaves_rank_k():
    a = torch.randn(8, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for k in range(1, 6):
        assert torch.linalg.matrix_rank(scale_singular_values(a, lam=0.0, k=k)) == k


def test_second_derivatives_say_what_to_do_instead():
    a = torch.randn(5, 3, requires_grad=True)
    new = scale_singular_values(a, lam=0.5, k=1).square().sum()
    (gradient,) = torch.autograd.grad(new, a, create_graph=True)
    with pytest.raises(RegaugError, match="gradient='frozen'"):
        gradient.sum().backward()
    frozen = scale_singular_values(a, lam=0.5, k=1, gradient="frozen").square().sum()
    (gradient,) = torch.autograd.grad(frozen, a, create_graph=True)
    gradient.sum().backward()


@given(
    values=st.lists(st.floats(0.0, 1e6), min_size=1, max_size=20),
    rho=st.floats(0.0, 1.0),
)
def test_rank_at_share_is_what_the_definition_says(values, rho):
    values = sorted(values, reverse=True)
    total, expected = 0.0, 0
    everything = math.fsum(values)
    for value in values:
        total += value
        if total <= rho * everything:
            expected += 1
    found = int(rank_at_share(torch.tensor(values, dtype=torch.float64), rho))
    # One value may lie on the edge, where the order of summation decides.
    on_edge = any(
        math.isclose(math.fsum(values[: i + 1]), rho * everything, rel_tol=1e-12)
        for i in range(len(values))
    )
    assert found == expected or on_edge


def test_rank_at_share_may_be_nothing_and_everything():
    values = torch.tensor([6.0, 3.0, 1.0])
    assert rank_at_share(values, 0.0) == 0
    assert rank_at_share(values, 0.59) == 0
    assert rank_at_share(values, 0.6) == 1
    assert rank_at_share(values, 1.0) == 3
    assert rank_at_share(torch.zeros(3), 0.5) == 3  # nothing is left to scale
    stack = torch.stack([values, torch.tensor([1.0, 1.0, 1.0])])
    assert rank_at_share(stack, 0.7).tolist() == [1, 2]
    assert rank_at_share(stack, torch.tensor([1.0, 0.3])).tolist() == [3, 0]


@given(n=st.integers(1, 8), r=st.integers(1, 8), rho=st.floats(0.0, 1.0), seed=st.integers(0, 99))
def test_a_spectrum_counts_like_rank_at_share(n, r, rho, seed):
    a = torch.randn(n, r, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    one, stack = decompose(a), decompose(torch.stack([a, a]))
    k = one.rank_at_share(rho)
    assert stack.rank_at_share(rho).tolist() == [k, k]
    assert rank_at_share(torch.linalg.svdvals(a), rho) == k


BAD_ARGUMENTS = {
    "k negative": ({"k": -1}, ArgumentError, r"`k` must be from 0 to 3, got -1"),
    "k too large": ({"k": 4}, ArgumentError, r"`k` must be from 0 to 3, got 4"),
    "k a fraction": ({"k": 1.5}, ArgumentTypeError, r"`k` must be a whole number, got 1.5"),
    "k tensor too large": (
        {"k": torch.tensor(9)},
        ArgumentError,
        r"`k` must be finite and in \[0, 3\]",
    ),
    "k of another shape": ({"k": torch.tensor([1, 1])}, ArgumentError, r"`k` must be a number or"),
    "k not whole": ({"k": torch.tensor(1.0)}, ArgumentTypeError, r"`k` must hold whole numbers"),
    "lam negative": ({"lam": -0.1}, ArgumentError, r"`lam` must be at least 0, got -0.1"),
    "lam NaN": ({"lam": math.nan}, ArgumentError, r"`lam` must be at least 0, got nan"),
    "lam tensor": ({"lam": torch.tensor(-1.0)}, ArgumentError, r"`lam` must be finite and at"),
    "lam text": ({"lam": "half"}, ArgumentTypeError, r"`lam` must be a number, got 'half'"),
    "scale": ({"scale": "small"}, ArgumentError, r"`scale` must be one of 'trailing', 'leading'"),
    "gradient": ({"gradient": "no"}, ArgumentError, r"`gradient` must be one of 'exact', 'fro"),
    "empty": ({"a": torch.zeros(0, 3)}, ArgumentError, r"`a` must be .* got \(0, 3\)"),
    "one axis": ({"a": torch.zeros(3)}, ArgumentError, r"`a` must be .* got \(3,\)"),
    "integers": ({"a": torch.ones(5, 3, dtype=torch.int64)}, ArgumentTypeError, r"a\.float\(\)"),
    "a list": ({"a": [[1.0]]}, ArgumentTypeError, r"`a` must be a torch.Tensor, got list"),
    "NaN": ({"a": torch.full((5, 3), math.nan)}, NonFiniteError, r"`a` must be finite, got nan"),
    "inf": ({"a": torch.full((5, 3), math.inf)}, NonFiniteError, r"`a` must be finite, got inf"),
    "inf64": ({"a": torch.ones(3, 5).double() / 0}, NonFiniteError, r"`a` must be finite"),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_bad_arguments_are_named(case):
    changed, error, message = BAD_ARGUMENTS[case]
    arguments = {"a": torch.randn(5, 3), "lam": 0.5, "k": 1} | changed
    with pytest.raises(error, match=message):
        scale_singular_values(arguments.pop("a"), **arguments)


@pytest.mark.parametrize("rho", [-0.1, 1.1, math.nan, torch.tensor(2.0)])
def test_rank_at_share_checks_the_share(rho):
    with pytest.raises(ArgumentError, match="`rho` must be"):
        rank_at_share(torch.ones(3), rho)


# Forward mode and torch.func


def small_step(function, a, along, step=1e-6):
    """The derivative by finite differences."""
    return (function(a + step * along) - function(a - step * along)) / (2 * step)


@pytest.mark.parametrize("scale", ["trailing", "leading"])
@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (2, 5, 4)])
@pytest.mark.filterwarnings("ignore:.torch.jit.script")  # of torch's own making
def test_every_derivative_is_that_of_small_steps(shape, k, scale):
    generator = torch.Generator().manual_seed(0)
    a, along = (torch.randn(shape, dtype=torch.float64, generator=generator) for _ in range(2))

    def function(a):
        return scale_singular_values(a, lam=0.3, k=k, scale=scale)

    expected = small_step(function, a, along)
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(function(forward_ad.make_dual(a, along)))
    jacobian = torch.func.jacrev(function)(a)
    found = {
        "dual": dual.tangent,
        "jvp": torch.func.jvp(function, (a,), (along,))[1],
        "jacrev": (jacobian * along).flatten(a.ndim).sum(-1),
        "jacfwd": (torch.func.jacfwd(function)(a) * along).flatten(a.ndim).sum(-1),
        "vjp": torch.func.vjp(function, a)[1](along)[0],  # the derivative is symmetric
        "grad": torch.func.grad(lambda a: (function(a) * along).sum())(a),
    }
    for name, derivative in found.items():
        torch.testing.assert_close(
            derivative,
            expected,
            rtol=1e-6,
            atol=1e-7,
            msg=lambda text, name=name: f"{name}: {text}",
        )
    torch.testing.assert_close(dual.primal, function(a))


@pytest.mark.filterwarnings("ignore:.torch.jit.script")  # of torch's own making
def test_extreme_magnitudes_have_a_forward_derivative():
    generator = torch.Generator().manual_seed(0)
    a, along = (torch.randn(6, 4, dtype=torch.float64, generator=generator) for _ in range(2))

    def function(a):
        return scale_singular_values(a, lam=0.3, k=2)

    for size in (1e-30, 1e30):
        found = torch.func.jvp(function, (size * a,), (along,))[1]
        torch.testing.assert_close(found, small_step(function, a, along), rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore:.torch.jit.script")  # of torch's own making
def test_forward_mode_treats_frozen_directions_as_constants():
    a, along = torch.eye(3, dtype=torch.float64).cumsum(0), torch.ones(3, 3, dtype=torch.float64)
    frozen = partial(scale_singular_values, lam=0.3, k=1, gradient="frozen")
    found = torch.func.jvp(frozen, (a,), (along,))[1]
    expected = torch.func.vjp(frozen, a)[1](along)[0]
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("outer", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("inner", ["jacrev", "jacfwd"])
@pytest.mark.filterwarnings("ignore:.torch.jit.script")  # of torch's own making
def test_second_derivatives_of_torch_func_are_refused(outer, inner):
    first = getattr(torch.func, inner)(partial(scale_singular_values, lam=0.3, k=1))
    with pytest.raises(RegaugError, match="no derivative of its own. Use gradient='frozen'"):
        getattr(torch.func, outer)(first)(torch.randn(4, 3))


def test_vmap_is_told_that_a_stack_will_do():
    stack = torch.randn(3, 5, 4)
    function = partial(scale_singular_values, lam=0.3, k=2)
    mapped = (function, torch.func.grad(lambda a: function(a).sum()))
    for each in mapped:
        with pytest.raises(RegaugError, match=r"Give the whole stack \(..., n, r\) at once"):
            torch.func.vmap(each)(stack)
    whole = function(stack)
    torch.testing.assert_close(whole, torch.stack([function(a) for a in stack]))
