"""Studies whose answer is known: no noise, a linear manifold, and no difference at all."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from regaug import methods
from regaug.data import split_dataset
from regaug.data.arrays import ArrayData
from regaug.data.base import Info, Part, Split
from regaug.data.splits import random_split
from regaug.problems import Problem
from regaug.studies.compare import compare


@pytest.fixture(autouse=True)
def _baselines(monkeypatch):
    # Boosting takes longer than all the nets of a small study.
    monkeypatch.setattr(
        "regaug.studies.eligibility.baseline_names", lambda split: ("mean", "ridge")
    )


def make_data(x, y):
    info = Info(name="known", task="table", metric="rmse", split="At random.")
    return ArrayData(x, y, info=info, rule=lambda seed: random_split(len(y), seed=seed))


# No noise: there is nothing that an augmentation could take out.


def make_smooth(n=300, seed=0):
    x = np.random.default_rng(seed).uniform(-1, 1, (n, 5))
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + x[:, 3] ** 2 + 0.5 * x[:, 4]
    return make_data(x, y)


def check_plain_wins(study):
    assert study.verdict.helps == ()
    assert study.verdict.recommended == "erm"
    assert study.verdict.use in ("erm", "nets", "auto")
    assert study.comparison.row("erm").mean < 0.5 * study.comparison.row("ridge").mean


def test_nothing_helps_on_a_smooth_target_without_noise(monkeypatch, shorten):
    shorten(monkeypatch, 40, 20)
    problem = replace(Problem.from_table(make_smooth(), splits=4), hidden=(64, 64))
    check_plain_wins(compare(problem, methods=["mixup", "foma-rho"], trials=2))


@pytest.mark.slow
def test_no_method_helps_on_a_smooth_target_without_noise():
    check_plain_wins(compare(make_smooth(), trials=8))


# A linear manifold in many columns. FOMA takes a batch and its targets for points near one, so what
# it shrinks is the noise; a net that sees the noise fits it. The test targets have none.


def make_draw(seed, *, dimension=8, columns=40, sizes=(60, 60, 2000)):
    rng = np.random.default_rng((6, seed))
    directions = np.linalg.qr(rng.standard_normal((columns, dimension)))[0]
    directions = directions * np.sqrt(columns / dimension)  # inputs of variance 1
    weights = rng.standard_normal(dimension)
    weights /= np.linalg.norm(weights)

    def part(n, *, noise):
        inner = rng.standard_normal((n, dimension))
        x = inner @ directions.T + 0.1 * rng.standard_normal((n, columns))
        y = inner @ weights + noise * rng.standard_normal(n)
        x, y = (torch.from_numpy(v.astype(np.float32)) for v in (x, y[:, None]))
        return Part(x, y, rng.permutation(n))

    train, validation, test = sizes
    return Split(part(train, noise=0.3), part(validation, noise=0.3), part(test, noise=0.0))


def test_independent_draws_of_a_linear_manifold_can_be_compared(monkeypatch, shorten):
    shorten(monkeypatch, 40, 20)
    draws = [make_draw(seed, sizes=(60, 60, 500)) for seed in range(5)]
    study = compare(draws, methods=["mixup", "foma"], trials=3, independent=True)
    assert study.comparison.n_splits == 5
    for name in ("erm", "mixup", "foma"):
        assert study.comparison.paired(name, "mean").high < 0  # all have learned something


@pytest.mark.slow
def test_foma_helps_on_a_linear_manifold():
    # Many draws, as the change is small: a net that learns what ridge leaves needs little help.
    draws = [make_draw(seed) for seed in range(300, 360)]
    names = ["mixup", "c-mixup", "foma", "foma-rho"]
    study = compare(draws, methods=names, trials=4, independent=True)
    for name in ("foma", "foma-rho"):
        row = study.comparison.row(name)
        assert row.change < 0
        assert row.is_significant  # after Holm's correction for all four methods
    assert study.verdict.recommended in ("foma", "foma-rho")


# No difference by construction: plain training under other names, so with other seeds.


def make_null(seed, n=60):
    rng = np.random.default_rng((7, seed))
    x = rng.standard_normal((n, 5))
    data = make_data(x, np.sin(x[:, 0]) + 0.5 * x[:, 1] + 0.5 * rng.standard_normal(n))
    return Problem.from_table(data, splits=5, seed=seed)


def make_cnn(split):
    layers = nn.Conv2d(1, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 1)
    return nn.Sequential(*layers)


def make_null_images(seed, n=120):
    """Pictures with a bright spot, whose distance from a corner is the target, with noise."""
    rng = np.random.default_rng((8, seed))
    spots = rng.uniform(0, 7, (n, 2, 1, 1))
    rows, columns = np.mgrid[:8, :8]
    x = np.exp(-((rows - spots[:, 0]) ** 2 + (columns - spots[:, 1]) ** 2) / 2)[:, None]
    x = (x + 0.2 * rng.standard_normal(x.shape)).astype(np.float32)
    y = np.linalg.norm(spots[:, :, 0, 0], axis=1) + 0.5 * rng.standard_normal(n)
    return Problem(split_dataset((x, y.astype(np.float32)), seeds=range(seed, seed + 5)), make_cnn)


def count_false_findings(patch, problems, count=8, **options):
    """In how many studies a copy of plain training is called different from it."""
    copies = {f"copy-{i}": methods.get("erm") for i in range(count)}
    patch.setattr(methods, "METHODS", {**methods.METHODS} | copies)
    patch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))
    found = 0
    for seed, problem in enumerate(problems):
        study = compare(problem, methods=["erm", *copies], seed=seed, **options)
        rows = [study.comparison.row(name) for name in copies]
        assert len({study.comparison.row("erm").errors, *(row.errors for row in rows)}) == count + 1
        assert all(row.p is not None for row in rows)
        significant = [row for row in rows if row.is_significant]
        assert len(study.verdict.helps + study.verdict.hurts) == len(significant)
        found += bool(significant)
    return found


def test_copies_of_plain_training_are_rarely_found_to_differ(monkeypatch, shorten):
    shorten(monkeypatch, 5)
    problems = (replace(make_null(seed), hidden=(16,)) for seed in range(2))
    assert count_false_findings(monkeypatch, problems, 4, trials=2) <= 1


@pytest.mark.slow
def test_copies_of_plain_training_are_found_to_differ_in_at_most_a_tenth_of_studies(monkeypatch):
    assert count_false_findings(monkeypatch, map(make_null, range(100)), trials=4) <= 10


def test_copies_of_plain_training_of_a_network_are_rarely_found_to_differ(monkeypatch):
    problems = [make_null_images(0)]
    assert count_false_findings(monkeypatch, problems, 2, trials=1, epochs=2) == 0


@pytest.mark.slow
def test_copies_of_a_networks_training_are_found_to_differ_in_at_most_a_tenth(monkeypatch):
    problems = map(make_null_images, range(40))
    assert count_false_findings(monkeypatch, problems, 5, trials=2, epochs=20) <= 4


# Nothing to learn: the targets belong to other rows. A method that is called better or worse than
# plain training there has only learned less or more of the noise.


def make_permuted(seed, n=60):
    rng = np.random.default_rng((9, seed))
    x = rng.standard_normal((n, 5))
    y = np.sin(x[:, 0]) + 0.5 * x[:, 1] + 0.5 * rng.standard_normal(n)
    return Problem.from_table(make_data(x, rng.permutation(y)), splits=5, seed=seed)


def count_findings(problems, **options):
    """In how many studies any method is called different from plain training."""
    found = 0
    for seed, problem in enumerate(problems):
        study = compare(problem, methods=methods.names(), seed=seed, **options)
        assert study.comparison.row("erm").mean is not None
        found += bool(study.verdict.helps + study.verdict.hurts)
    return found


@pytest.mark.slow
def test_methods_are_found_to_differ_in_at_most_a_tenth_of_studies_of_permuted_targets():
    assert count_findings(map(make_permuted, range(50)), trials=3) <= 5
