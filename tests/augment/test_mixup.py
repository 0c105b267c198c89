"""Mixup and C-Mixup: partners inside the batch, paired batches, layers, strength."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from regaug.augment.mixup import CMixup, Mixup, MixupParams
from regaug.exceptions import ArgumentError, NonFiniteError, PlaceError
from regaug.samplers.kernel_pairs import KernelPairSampler

CLASSES = [Mixup, CMixup]


def make_batch(n=16, d=4, seed=0, targets=(), dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator)
    return x.to(dtype), torch.randn(n, *targets, generator=generator).to(dtype)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("targets", [(), (1,), (3,), (2, 2)])
@pytest.mark.parametrize("features", [(4,), (3, 5, 2)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_shape_and_dtype_are_kept(cls, targets, features, dtype):
    x, y = torch.randn(7, *features).to(dtype), torch.randn(7, *targets)
    copies = x.clone(), y.clone()
    new_x, new_y = cls()(x, y)
    assert (new_x.shape, new_x.dtype) == (x.shape, x.dtype)
    assert (new_y.shape, new_y.dtype) == (y.shape, y.dtype)
    assert new_x.isfinite().all()
    assert torch.equal(x, copies[0])
    assert torch.equal(y, copies[1])


@pytest.mark.parametrize("cls", CLASSES)
def test_a_sample_is_mixed_with_its_partner(cls):
    x, y = make_batch()
    augment = cls(bandwidth=0.5) if cls is CMixup else cls()
    new_x, new_y = augment(x, y)
    lam, partners = augment.params.lam, augment.params.partners
    assert 0.0 < lam < 1.0
    torch.testing.assert_close(new_x, lam * x + (1 - lam) * x[partners])
    torch.testing.assert_close(new_y, lam * y + (1 - lam) * y[partners])


@pytest.mark.parametrize("cls", CLASSES)
def test_lam_one_and_neutral_params_leave_the_batch(cls):
    x, y = make_batch()
    for params in (cls.neutral, MixupParams(1.0, torch.arange(16).flip(0))):
        new_x, new_y = cls().transform(x, y, params)
        assert torch.equal(new_x, x)
        assert torch.equal(new_y, y)


@given(st.integers(0, 99), st.floats(0.0, 1.0))
def test_the_order_of_samples_does_not_matter(seed, lam):
    x, y = make_batch()
    generator = torch.Generator().manual_seed(seed)
    partners = torch.randint(16, (16,), generator=generator)
    order = torch.randperm(16, generator=generator)
    old = Mixup().transform(x, y, MixupParams(lam, partners))
    moved = MixupParams(lam, order.argsort()[partners[order]])
    new = Mixup().transform(x[order], y[order], moved)
    assert torch.equal(new[0], old[0][order])
    assert torch.equal(new[1], old[1][order])


def test_mixup_draws_permutations_without_bias():
    x, y = make_batch(n=4)
    augment, counts = Mixup(), torch.zeros(4, 4)
    for _ in range(2000):
        partners = augment.draw(x, y).partners
        assert sorted(partners.tolist()) == [0, 1, 2, 3]
        counts[torch.arange(4), partners] += 1
    assert counts.min() > 400
    assert counts.max() < 600


def test_c_mixup_draws_partners_by_the_kernel():
    y = torch.tensor([0.0, 0.0, 1.0, 2.5, 100.0])
    x = torch.zeros(5, 1)
    weights = torch.exp(-((y[:, None] - y) ** 2) / (2 * 0.8**2))
    expected = weights / weights.sum(1, keepdim=True)
    augment, counts = CMixup(bandwidth=0.8), torch.zeros(5, 5)
    for _ in range(2000):
        counts[torch.arange(5), augment.draw(x, y).partners] += 1
    torch.testing.assert_close(counts / 2000, expected, atol=0.05, rtol=0.0)
    assert counts[4, 4] == 2000


def test_bandwidth_decides_how_far_partners_are():
    x, y = make_batch(n=200)
    near = CMixup(bandwidth=0.05).draw(x, y).partners
    far = CMixup(bandwidth=100.0).draw(x, y).partners
    assert (y - y[near]).abs().mean() < 0.1
    assert (y - y[far]).abs().mean() > 0.8


@pytest.mark.parametrize("alpha", [0.1, 1.0, 20.0])
def test_lam_follows_the_beta_distribution(alpha):
    x, y = make_batch(n=2)
    augment = Mixup(alpha)
    lams = torch.tensor([augment.draw(x, y).lam for _ in range(2000)], dtype=torch.float64)
    assert lams.mean().item() == pytest.approx(0.5, abs=0.05)
    assert lams.var().item() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.15)


@pytest.mark.parametrize("cls", CLASSES)
def test_same_seed_same_result_whatever_the_global_generator_does(cls):
    x, y = make_batch()
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        augment = cls(generator=torch.Generator().manual_seed(7))
        results.append([augment(x, y)[0] for _ in range(3)])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert not torch.equal(results[0][0], results[0][1])


@pytest.mark.parametrize("cls", CLASSES)
def test_paired_mixes_the_first_half_with_the_second(cls):
    x, y = make_batch(n=10)
    augment = cls(paired=True)
    new_x, new_y = augment(x, y)
    lam = augment.params.lam
    torch.testing.assert_close(new_x, lam * x[:5] + (1 - lam) * x[5:])
    torch.testing.assert_close(new_y, lam * y[:5] + (1 - lam) * y[5:])
    for kept_x, kept_y in (
        augment.transform(x, y, cls.neutral),
        augment.transform(x, y, MixupParams(1.0, augment.params.partners)),
    ):
        assert torch.equal(kept_x, x[:5])
        assert torch.equal(kept_y, y[:5])


@pytest.mark.parametrize("append", [False, True])
def test_an_untouched_paired_batch_is_its_samples(append):
    x, y = make_batch(n=10)
    annealed = Mixup(paired=True, append=append, anneal=0.5)
    annealed.progress = 0.7
    for augment in (Mixup(paired=True, append=append, p=0.0), annealed):
        new_x, new_y = augment(x, y)
        assert torch.equal(new_x, x[:5])
        assert torch.equal(new_y, y[:5])
        assert augment.params is Mixup.neutral


def test_append_puts_the_samples_before_the_new_ones():
    x, y = make_batch(n=10)
    new_x, new_y = Mixup(paired=True, append=True)(x, y)
    assert new_x.shape == (10, 4)
    assert torch.equal(new_x[:5], x[:5])
    assert torch.equal(new_y[:5], y[:5])
    assert not torch.equal(new_x[5:], x[:5])
    assert Mixup(append=True)(x, y)[0].shape == (20, 4)


@pytest.mark.parametrize("paired", [False, True])
def test_eval_is_the_identity(paired):
    x, y = make_batch(n=9)
    new_x, new_y = Mixup(paired=paired).eval()(x, y)
    assert new_x is x
    assert new_y is y


def test_training_with_anneal_ends_at_plain_training():
    x, y = make_batch(n=64)
    augment = CMixup(paired=True, anneal=0.5)
    augment.progress = 0.5
    plain = [samples[: len(samples) // 2] for samples in KernelPairSampler(y, 10, seed=3)]
    for samples, batch in zip(plain, KernelPairSampler(y, 10, seed=3), strict=True):
        new_x, new_y = augment(x[batch], y[batch])
        assert torch.equal(new_x, x[samples])
        assert torch.equal(new_y, y[samples])


def test_a_loader_with_kernel_pairs_feeds_paired_batches():
    x, y = make_batch(n=50)
    sampler = KernelPairSampler(y, 8, bandwidth=0.1, drop_last=True)
    loader = DataLoader(TensorDataset(x, y), batch_sampler=sampler)
    augment = CMixup(paired=True)
    sizes = [augment(*batch)[0].shape for batch in loader]
    assert sizes == [(8, 4)] * 6


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("place", ["0", "1", "input"])
def test_paired_batches_at_a_layer(cls, place):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    x, y = make_batch(n=10)
    at = cls(paired=True).at(net, place)
    output, targets = at(x, y)
    loss = ((output.squeeze(1) - targets) ** 2).mean()
    lam = at.params.lam
    depth = 0 if place == "input" else int(place) + 1
    hidden = net[:depth](x)
    expected = net[depth:](lam * hidden[:5] + (1 - lam) * hidden[5:]).squeeze(1)
    torch.testing.assert_close(targets, lam * y[:5] + (1 - lam) * y[5:])
    torch.testing.assert_close(loss, ((expected - targets) ** 2).mean())
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in net.parameters())


def test_a_step_that_has_its_targets_cannot_get_fewer_of_them():
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))
    x, y = make_batch(n=10)
    with pytest.raises(PlaceError, match="made 5 samples of 10, but the training step has"):
        Mixup(paired=True).at(net, "0").act_in(lambda x, _: net(x), x, y)


@pytest.mark.parametrize("cls", CLASSES)
@given(
    n=st.integers(1, 5),
    scale=st.sampled_from([0.0, 1e-12, 1.0, 1e12]),
    equal=st.booleans(),
    dtype=st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]),
)
def test_ugly_batches_stay_finite_and_so_do_gradients(cls, n, scale, equal, dtype):
    x, y = make_batch(n=n, dtype=torch.float64)
    x = x[:1].repeat(n, 1) if equal else x
    x, y = ((part * scale).clamp(-6e4, 6e4).to(dtype) for part in (x, y))
    x.requires_grad_()
    new_x, new_y = cls()(x, y)
    new_x.sum().backward()
    assert new_x.isfinite().all()
    assert new_y.isfinite().all()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("cls", CLASSES)
def test_an_odd_paired_batch_is_refused(cls):
    for augment in (cls(paired=True), cls(paired=True, p=0.0)):
        with pytest.raises(ArgumentError, match=r"even number of rows for `paired=True`.*got 7"):
            augment(*make_batch(n=7))


def test_targets_that_are_not_finite_have_no_kernel():
    x, y = make_batch()
    y[3] = torch.nan
    with pytest.raises(NonFiniteError, match=r"`y` must be finite, got nan at index \(3"):
        CMixup()(x, y)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, float("inf")])
def test_bandwidth_must_be_positive(bandwidth):
    with pytest.raises(ArgumentError, match="`bandwidth` must be greater than 0"):
        CMixup(bandwidth=bandwidth)


@pytest.mark.parametrize("cls", CLASSES)
def test_alpha_must_be_positive(cls):
    with pytest.raises(ArgumentError, match="`alpha` must be greater than 0, got 0"):
        cls(0.0)


def test_repr_shows_the_settings():
    assert repr(CMixup(2.0, bandwidth=0.5, paired=True)) == (
        "CMixup(bandwidth=0.5, alpha=2.0, paired=True, p=1.0, anneal=None)"
    )
