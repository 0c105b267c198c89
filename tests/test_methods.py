"""The table of methods: its names, and what one looks like."""

import numpy as np
import pytest

from regaug import CMixup, KernelPairSampler, methods
from regaug.exceptions import UnknownNameError

NAMES = (
    "erm",
    "noise",
    "mixup",
    "manifold-mixup",
    "c-mixup",
    "ada",
    "foma",
    "foma-rho",
    "cems",
)


def test_names_are_those_of_the_contract():
    assert methods.names() == NAMES


def test_an_unknown_method_gets_a_suggestion():
    with pytest.raises(
        UnknownNameError, match=r"Unknown method 'cmixup'. Did you mean 'c-mixup'\?"
    ):
        methods.get("cmixup")


def test_settings_go_to_whom_they_belong():
    method = methods.get("c-mixup")
    settings = method.settings(bandwidth=0.7, alpha=0.5)
    sampler = method.make_sampler(np.arange(10.0), 4, settings)
    augmentation = method.make_augmentation(settings)
    assert isinstance(sampler, KernelPairSampler)
    assert sampler.bandwidth == 0.7
    assert isinstance(augmentation, CMixup)
    assert augmentation.alpha == 0.5
    assert augmentation.paired


def test_draws_are_seeded_and_within_bounds():
    method = methods.get("mixup")
    draws = [method.draw_settings(np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    alphas = [method.draw_settings(np.random.default_rng(seed))["alpha"] for seed in range(300)]
    assert 0.02 <= min(alphas) < 0.03
    assert 1.5 < max(alphas) <= 2.0
    assert np.median(alphas) == pytest.approx(0.2, rel=0.3)  # evenly on a logarithmic scale
