"""What every augmentation keeps to when many runs go through it as one stack."""

from dataclasses import fields, is_dataclass
from itertools import product

import pytest
import torch
from sklearn.linear_model import Ridge
from torch import Tensor

from regaug import (
    ADA,
    CEMS,
    FOMA,
    CMixup,
    Compose,
    FeatureMix,
    GaussianNoise,
    Mixup,
    SKMixup,
    TeacherRows,
    augment,
)

AUGMENTATIONS = {
    name.lower(): getattr(augment, name) for name in augment.__all__ if name != "Augmentation"
}
# Every augmentation with its defaults, and others whose numbers differ from run to run.
CASES = {
    **{
        name: lambda run, kind=kind, **options: kind(**options)
        for name, kind in AUGMENTATIONS.items()
    },
    "teacherrows": lambda run, **o: TeacherRows(Ridge(), folds=2, count=1 + run, **o),
    "foma rho": lambda run, **o: FOMA(0.5 + run, rho=0.5 + 0.1 * run, **o),
    "foma rho 0 and 1": lambda run, **o: FOMA(rho=float(run % 2), **o),
    "foma k": lambda run, **o: FOMA(k=run, **o),
    "foma two_nn": lambda run, **o: FOMA(k="two_nn", **o),
    "foma two_nn_data": lambda run, **o: FOMA(k="two_nn_data", **o),
    "foma leading": lambda run, **o: FOMA(k=1 + run, scale="leading", center=True, **o),
    "foma center": lambda run, **o: FOMA(rho=0.6, center=True, **o),
    "foma keep": lambda run, **o: FOMA(rho=0.6, targets="keep", weight="lam2", **o),
    "foma frozen": lambda run, **o: FOMA(rho=0.6, gradient="frozen", weight="lam", **o),
    "foma lam_range": lambda run, **o: FOMA(rho=0.6, lam_range=(1.0, 1.5 + run), **o),
    "mixup paired": lambda run, **o: Mixup(0.5 + run, paired=True, **o),
    "noise relative": lambda run, **o: GaussianNoise(0.1 * run, relative=0.1 + run, **o),
    "noise keep": lambda run, **o: GaussianNoise(0.1 + run, targets="keep", **o),
    "mixup assignment": lambda run, **o: Mixup(0.5 + run, pairs="assignment", **o),
    "mixup neighbors": lambda run, **o: Mixup(pairs="neighbors", neighbors=1 + 3 * run, **o),
    "mixup keep": lambda run, **o: Mixup(0.5 + run, spread=("keep", "shrink")[run % 2], **o),
    "sk-mixup widths": lambda run, **o: SKMixup(0.5 + run, width=0.1 + run, **o),
    "sk-mixup inputs": lambda run, **o: SKMixup(distance="inputs", width=0.3, **o),
    "sk-mixup two warps": lambda run, **o: SKMixup(1.0 + run, alpha_y=0.5, width_y=0.2, **o),
    "c-mixup widths": lambda run, **o: CMixup(bandwidth=0.1 + run, **o),
    "c-mixup paired": lambda run, **o: CMixup(paired=True, **o),
    "ada numbers": lambda run, **o: ADA(1.0 + run, levels=1 + run, clusters=1 + run, **o),
    "ada targets": lambda run, **o: ADA(1.0 + run, clusters=3, cluster_by="targets", **o),
    "ada raw": lambda run, **o: ADA(1.0 + run, clusters=3, cluster_by="raw", **o),
    "cems stored": lambda run, **o: CEMS(0.1 + 0.05 * run, d=1 + run % 2, neighbors=5, **o),
    "cems stored, dimension of the data": lambda run, **o: CEMS(d="two_nn_data", neighbors=6, **o),
    "feature-mix information": lambda run, **o: FeatureMix(0.5 + run, targets="information", **o),
    "feature-mix rates": lambda run, **o: FeatureMix(rate=0.1 + 0.2 * run, **o),
    "feature-mix keep": lambda run, **o: FeatureMix(rate=0.3, targets="keep", **o),
    "compose two": lambda run, **o: Compose(FOMA(), GaussianNoise(0.1), **o),
}


class Half(Mixup):
    """Derived from one that has arithmetic of its own for stacks, which is not that of this one."""

    def transform(self, x, y, params):
        new_x, new_y = super().transform(x, y, params)
        return 0.5 * (x + new_x), 0.5 * (y + new_y)


CASES["derived"] = lambda run, **o: Half(0.5 + run, **o)
# Runs, rows of a batch, features of a row, targets of a row.
SHAPES = [
    (1, 12, (3,), (1,)),
    (5, 12, (3,), (1,)),
    (5, 6, (20,), (3,)),
    (5, 12, (2, 5), (2, 2)),
    (5, 12, (3,), ()),
]
TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-12}


def often(cases, is_often):
    """Give all cases, of which those are tried every time that this function says."""
    return [pytest.param(*own, marks=[] if is_often(*own) else pytest.mark.slow) for own in cases]


@pytest.fixture(params=CASES)
def name(request):
    return request.param


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def make_stack(runs, n, features, targets, dtype=torch.float64, seed=0):
    x = torch.randn((runs, n, *features), generator=seeded(seed), dtype=torch.float64)
    y = torch.randn((runs, n, *targets), generator=seeded(seed + 1), dtype=torch.float64)
    return x.to(dtype), y.to(dtype)


def make_parts(name, x, y):
    """Make an augmentation for every run, each with its own seed and training rows."""
    options = {"clusters": 4} if name == "ada" else {}
    return [
        CASES[name](run, generator=seeded(run), **options).fit(one_x, one_y)
        for run, (one_x, one_y) in enumerate(zip(x, y, strict=True))
    ]


def across(parts, x, y):
    return type(parts[0]).across_runs(parts, x, y)


def one_by_one(parts, x, y):
    """The plain way: each run draws and transforms, and the results are put side by side."""
    new = []
    for part, one_x, one_y in zip(parts, x, y, strict=True):
        params = part.draw(one_x, one_y)
        part.params = part._public(params)
        new.append(part.transform(one_x, one_y, params))
    return tuple(torch.stack(tensors) for tensors in zip(*new, strict=True))


def assert_same_params(params, expected):
    assert type(params) is type(expected)
    if isinstance(expected, Tensor):
        torch.testing.assert_close(params, expected, rtol=0, atol=0)
    elif isinstance(expected, tuple):
        for one, other in zip(params, expected, strict=True):
            assert_same_params(one, other)
    elif is_dataclass(expected):
        for part in fields(expected):
            assert_same_params(getattr(params, part.name), getattr(expected, part.name))
    else:
        assert params == expected


@pytest.mark.parametrize(
    ("dtype", "shape"),
    often(product(TOLERANCES, SHAPES), lambda dtype, shape: dtype.itemsize == 8 or shape[1] == 6),
    ids=str,
)
def test_a_stack_is_its_runs_one_by_one(name, shape, dtype):
    x, y = make_stack(*shape, dtype=dtype)
    parts, others = make_parts(name, x, y), make_parts(name, x, y)
    for _ in range(3):  # the draws go on where they were
        stacked, plain = across(parts, x, y), one_by_one(others, x, y)
        for new, expected in zip(stacked, plain, strict=True):
            assert new.dtype == dtype
            torch.testing.assert_close(new, expected, rtol=0, atol=TOLERANCES[dtype])
        for part, other in zip(parts, others, strict=True):
            assert_same_params(part.params, other.params)
            assert torch.equal(part.generator.get_state(), other.generator.get_state())


@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_the_gradient_of_a_stack_is_that_of_its_runs(name, shape, dtype):
    x, y = make_stack(*shape, dtype=dtype)
    gradients = []
    for way in (across, one_by_one):
        leaf = x.clone().requires_grad_()
        new_x, new_y = way(make_parts(name, x, y), leaf, y)
        (new_x.sin().sum() + new_y.cos().sum()).backward()
        gradients.append(leaf.grad)
    # The gradient through singular directions is divided by gaps between them.
    tolerance = 10 * TOLERANCES[dtype]
    torch.testing.assert_close(*gradients, rtol=tolerance, atol=tolerance)


def test_a_stack_is_not_modified(name):
    x, y = make_stack(5, 12, (3,), (1,))
    before = x.clone(), y.clone()
    across(make_parts(name, x, y), x, y)
    assert torch.equal(x, before[0])
    assert torch.equal(y, before[1])


def test_a_run_does_not_depend_on_the_others_in_its_stack(name):
    x, y = make_stack(5, 12, (3,), (1,))
    whole = across(make_parts(name, x, y), x, y)
    parts = make_parts(name, x, y)
    chosen = [3, 1]
    some = across([parts[run] for run in chosen], x[chosen], y[chosen])
    for new, expected in zip(some, whole, strict=True):
        torch.testing.assert_close(new, expected[chosen], rtol=0, atol=1e-12)


UGLY = {
    "equal rows": lambda x: x[:1].expand_as(x),
    "all zero": torch.zeros_like,
    "dead units": lambda x: torch.relu(x - 3.0),
    "rank one": lambda x: x[:, :1].expand_as(x),
    "tiny": lambda x: x * 1e-12,
    "huge": lambda x: x * 1e12,
}


# What is not finite is so in single precision first.
@pytest.mark.parametrize(
    ("dtype", "kind"),
    often(product(TOLERANCES, UGLY), lambda dtype, kind: dtype.itemsize == 4 or kind == "huge"),
    ids=str,
)
def test_an_ugly_run_is_finite_and_leaves_the_others_alone(name, kind, dtype):
    x, y = make_stack(3, 12, (3,), (1,), dtype=dtype)
    ugly_x, ugly_y = x.clone(), y.clone()
    ugly_x[1], ugly_y[1] = UGLY[kind](x[1]), UGLY[kind](y[1])
    leaf = ugly_x.clone().requires_grad_()
    new = across(make_parts(name, x, y), leaf, ugly_y)
    good = one_by_one(make_parts(name, x, y), x, y)
    for tensor, expected in zip(new, good, strict=True):
        assert tensor.isfinite().all()
        # In float64 a stack may be decomposed in a more careful way than a run of it.
        tolerance = max(TOLERANCES[dtype], 1e-10)
        torch.testing.assert_close(tensor[[0, 2]], expected[[0, 2]], rtol=0, atol=tolerance)
    sum(tensor.mean(dim=tuple(range(1, tensor.ndim))).sum() for tensor in new).backward()
    assert leaf.grad.isfinite().all()
