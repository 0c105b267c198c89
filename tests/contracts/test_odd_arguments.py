"""Every public function with an odd argument: a result, or an error of ours that says so."""

import inspect
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import regaug
from regaug import functional, metrics, models
from regaug.exceptions import RegaugError
from regaug.training import Settings

N, D = 6, 3
X = torch.linspace(-1.0, 1.0, N * D).reshape(N, D).square() + torch.arange(N)[:, None]
Y = X.sum(dim=1, keepdim=True).sin()
PARTNERS = torch.tensor([1, 0, 3, 2, 5, 4])
DRAWS = torch.linspace(0.05, 0.95, N, dtype=torch.float64)
PREDICTION = Y + 0.1

FUNCTIONS = {
    "ada": partial(functional.ada, X, Y, clusters=torch.arange(N) % 2, gamma=2.0),
    "assigned_partners": partial(functional.assigned_partners, X, order=PARTNERS),
    "cems": partial(functional.cems, X, Y, eta=torch.full((1, N, 1), 0.1)),
    "feature_mix": partial(
        functional.feature_mix, X, Y, partners=PARTNERS, swapped=torch.zeros(N, D).bool()
    ),
    "foma": partial(functional.foma, X, Y, lam=0.5, k=1),
    "kernel_probabilities": partial(functional.kernel_probabilities, Y, bandwidth=1.0),
    "mix": partial(functional.mix, X, Y, lam=0.5, partners=PARTNERS),
    "mutual_information": partial(functional.mutual_information, X, Y),
    "nearest_partners": partial(functional.nearest_partners, X, draws=DRAWS, neighbors=2),
    "rank_at_share": partial(functional.rank_at_share, torch.tensor([2.0, 1.0]), 0.9),
    "relevance": partial(functional.relevance, Y),
    "scale_singular_values": partial(functional.scale_singular_values, X, lam=0.5, k=1),
    "warp_shares": partial(
        functional.warp_shares, X, lam=0.5, partners=PARTNERS, alpha=1.0, width=1.0
    ),
    "two_nn": partial(regaug.two_nn, torch.randn(20, 3, generator=torch.Generator())),
    "linear_dimension": partial(regaug.linear_dimension, X),
    **{
        name: partial(getattr(metrics, name), PREDICTION, Y)
        for name in ("rmse", "mae", "mape", "r2", "pearson", "balanced_rmse", "tail_rmse")
    },
    "by_tenth": partial(metrics.by_tenth, PREDICTION, Y),
    "evaluate": partial(metrics.evaluate, PREDICTION, Y),
    "spreads": partial(metrics.spreads, Y),
    "check_metric": partial(metrics.check_metric, "rmse"),
    "focused": partial(metrics.focused, "tail-rmse", "high"),
}
CLASSES = {
    "ADA": regaug.ADA,
    "CEMS": regaug.CEMS,
    "CMixup": regaug.CMixup,
    "FOMA": regaug.FOMA,
    "FeatureMix": regaug.FeatureMix,
    "GaussianNoise": regaug.GaussianNoise,
    "Identity": regaug.Identity,
    "Mixup": regaug.Mixup,
    "SKMixup": regaug.SKMixup,
    "SMOGN": regaug.SMOGN,
    "TeacherRows": regaug.TeacherRows,
    **{
        name: partial(getattr(regaug, name), Y, 2)
        for name in (
            "KernelPairSampler",
            "NearestBatchSampler",
            "RandomBatchSampler",
            "RareSampler",
            "WeightedBatchSampler",
        )
    },
    "Settings": Settings,
    "Between": partial(regaug.methods.Between, 0.1, 1.0),
    "MLP": partial(models.MLP, 3),
}
TENSORS = [
    torch.zeros(0),
    torch.zeros(0, D),
    torch.zeros(N, 0),
    torch.zeros(1, 1),
    torch.zeros(2, N, D),
    torch.zeros(N, D),
    torch.full((N, D), torch.nan),
    torch.full((N, 1), torch.inf),
    torch.full((N, D), 1e38),
    torch.ones(N, D, dtype=torch.int64),
    torch.ones(N, D, dtype=torch.bool),
    torch.ones(N, D, dtype=torch.complex64),
    torch.ones(N, D, dtype=torch.float16),
    torch.full((N,), -1),
    torch.full((N,), N),
    torch.tensor(0.5),
    torch.tensor(torch.nan),
]
NUMBERS = [-1, 0, 1, 2, 10**30, -0.5, 0.0, 0.5, 1e-300, 1e300, np.nan, np.inf, -np.inf, True]
THINGS = [None, "", "nothing", b"x", [], [0.5], (0.0, 1.0), {}, {"a": 1}, object(), len, 1j]
ODD = st.one_of(*(st.sampled_from(own) for own in (TENSORS, NUMBERS, THINGS)))


def call_with(call, data):
    """Call something with one of its arguments replaced; return whether it was refused."""
    whole = call.func if isinstance(call, partial) else call
    names = [
        name
        for name, own in inspect.signature(whole).parameters.items()
        if own.kind is not own.VAR_POSITIONAL
    ]
    given = inspect.signature(whole).bind_partial(*getattr(call, "args", ()))
    arguments = {**given.arguments, **getattr(call, "keywords", {})}
    arguments[data.draw(st.sampled_from(names), label="argument")] = data.draw(ODD, label="value")
    positional = [arguments.pop(name) for name in names if name in given.arguments]
    with warnings.catch_warnings(action="ignore"):
        try:
            return whole(*positional, **arguments), False
        except RegaugError:
            return None, True


def many(test):
    options = {"deadline": None, "suppress_health_check": list(HealthCheck)}
    return settings(max_examples=50, **options)(given(data=st.data())(test))


@pytest.mark.parametrize("name", FUNCTIONS)
@many
def test_functions(name, data):
    call_with(FUNCTIONS[name], data)


@pytest.mark.parametrize("name", CLASSES)
@many
def test_what_is_made_with_it_works(name, data):
    """What a constructor accepts, a batch or an epoch has to be possible with."""
    made, is_refused = call_with(CLASSES[name], data)
    if is_refused or isinstance(made, Settings | regaug.methods.Between):
        return
    with warnings.catch_warnings(action="ignore"):
        try:
            if isinstance(made, regaug.samplers.BatchSampler):
                assert len(list(made)) == len(made)
            elif isinstance(made, models.MLP):
                assert made(torch.ones(2, made.form.inputs)).shape[0] == 2
            elif not isinstance(made, regaug.TeacherRows):
                if hasattr(made, "fit"):
                    made.fit(X, Y)
                new_x, new_y = made(X, Y)
                assert len(new_x) == len(new_y)
        except RegaugError:
            pass


def test_every_public_function_is_here():
    missing = set(functional.__all__) - set(FUNCTIONS) - {"smogn", "stretch"}
    assert not missing
    assert {own.__name__ for own in vars(regaug.augment).values() if _is_augmentation(own)} <= {
        *CLASSES,
        "Augmentation",
        "Compose",
    }


def _is_augmentation(thing):
    return isinstance(thing, type) and issubclass(thing, regaug.augment.Augmentation)
