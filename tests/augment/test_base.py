"""What all augmentations share, shown on FOMA: when it acts, randomness, loaders, checkpoints."""

import copy
import pickle

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from regaug import ADA, CEMS, FOMA, Compose, GaussianNoise, Mixup
from regaug.augment import Augmentation
from regaug.exceptions import ArgumentError, ArgumentTypeError, ContractError, NonFiniteError


def make_batch(n=16, d=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator), torch.randn(n, generator=generator)


def count_touched(augmentation, batches=200):
    x, y = make_batch()
    return sum(augmentation(x, y)[0] is not x for _ in range(batches))


def test_eval_is_the_identity():
    x, y = make_batch()
    new_x, new_y = FOMA().eval()(x, y)
    assert new_x is x
    assert new_y is y


@pytest.mark.parametrize(("p", "low", "high"), [(0.0, 0, 0), (0.5, 70, 130), (1.0, 200, 200)])
def test_p_is_the_probability_that_a_batch_is_touched(p, low, high):
    assert low <= count_touched(FOMA(p=p)) <= high


def test_anneal_lowers_the_probability_to_zero():
    augmentation = FOMA(p=0.8, anneal=0.5)
    for progress, probability in [(0.0, 0.8), (0.25, 0.4), (0.5, 0.0), (1.0, 0.0)]:
        augmentation.progress = progress
        assert augmentation.probability == pytest.approx(probability)
    assert count_touched(augmentation) == 0


def test_an_untouched_batch_has_neutral_params():
    augmentation = FOMA(p=0.0, weight="lam")
    augmentation(*make_batch())
    assert augmentation.params.lam == 1.0
    assert augmentation.params.weight == 1.0


def test_append_returns_the_originals_first():
    x, y = make_batch()
    new_x, new_y = FOMA(append=True)(x, y)
    assert new_x.shape == (32, 4)
    assert new_y.shape == (32,)
    assert torch.equal(new_x[:16], x)
    assert torch.equal(new_y[:16], y)
    assert not torch.equal(new_x[16:], x)
    assert FOMA(append=True, p=0.0)(x, y)[0].shape == (16, 4)


def test_draw_then_transform_is_the_call():
    x, y = make_batch()
    one, two = FOMA(), FOMA()
    called = one(x, y)
    params = two.draw(x, y)
    assert params == one.params
    torch.testing.assert_close(two.transform(x, y, params), called)


def test_same_seed_same_result_whatever_the_global_generator_does():
    x, y = make_batch()
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        augmentation = FOMA(generator=torch.Generator().manual_seed(7))
        results.append([augmentation(x, y)[0] for _ in range(3)])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert not torch.equal(results[0][0], results[0][1])


def test_the_global_generator_is_not_used_up():
    before = torch.random.get_rng_state()
    FOMA(alpha=0.5, p=0.5)(*make_batch())
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_a_copy_continues_the_same_stream(copied):
    x, y = make_batch()
    augmentation = FOMA()
    augmentation(x, y)
    other = copied(augmentation)
    assert torch.equal(augmentation(x, y)[0], other(x, y)[0])


def test_state_dict_restores_the_stream():
    x, y = make_batch()
    augmentation = FOMA()
    augmentation(x, y)
    state = copy.deepcopy(augmentation.state_dict())
    expected = augmentation(x, y)[0]
    other = FOMA(generator=torch.Generator().manual_seed(99))
    other.load_state_dict(state)
    assert torch.equal(other(x, y)[0], expected)


def test_collate_fn_augments_the_batches_of_a_loader():
    x, y = make_batch(64)
    augmentation = FOMA(lam_range=(0.0, 0.0), k=1)
    loader = DataLoader(TensorDataset(x, y), 16, collate_fn=augmentation.as_collate_fn())
    batches = list(loader)
    assert len(batches) == 4
    for new_x, new_y in batches:
        assert torch.linalg.matrix_rank(torch.column_stack([new_x, new_y]), rtol=1e-4) == 1


def make_worker_loader(augmentation, workers, seed=0, **options):
    x, y = make_batch(64)
    return DataLoader(
        TensorDataset(x, y),
        16,
        num_workers=workers,
        collate_fn=augmentation.as_collate_fn(),
        generator=torch.Generator().manual_seed(seed),
        **options,
    )


def test_workers_draw_differently_from_each_other_and_in_every_epoch():
    loader = make_worker_loader(FOMA(rho=0.5), workers=2)
    epochs = [[x for x, _ in loader] for _ in range(2)]
    data = make_batch(64)[0].split(16)
    # How far each batch moved: 2 workers x 2 batches x 2 epochs, all with their own lam.
    moved = {
        round((new - old).norm().item(), 4)
        for epoch in epochs
        for new, old in zip(epoch, data, strict=True)
    }
    assert len(moved) == 8


def test_workers_are_reproducible():
    first, second = (list(make_worker_loader(FOMA(), workers=2, seed=3)) for _ in range(2))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(first, second, strict=True))


def test_persistent_workers_follow_the_progress():
    augmentation = FOMA(anneal=0.5)
    loader = make_worker_loader(augmentation, workers=1, persistent_workers=True)
    data = make_batch(64)[0].split(16)
    assert not any(torch.equal(new, old) for (new, _), old in zip(loader, data, strict=True))
    augmentation.progress = 1.0
    assert all(torch.equal(new, old) for (new, _), old in zip(loader, data, strict=True))


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_workers_may_be_started_in_any_way(start):
    def make_epochs(progress):
        x, y = make_batch(64)
        every = Compose(  # those that learn among them
            FOMA(k="two_nn_data"), Mixup(), GaussianNoise(), CEMS(neighbors=8), ADA(), anneal=0.5
        ).fit(x, y)
        every(x, y)
        loader = make_worker_loader(
            every, workers=2, persistent_workers=True, multiprocessing_context=start
        )
        epochs = [[new_x for new_x, _ in loader]]
        every.progress = progress
        return [*epochs, [new_x for new_x, _ in loader]]

    (first, second), (again, end) = make_epochs(0.0), make_epochs(1.0)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    data = make_batch(64)[0].split(16)
    moved = [(new - old).norm() for new, old in zip(first + second, data * 2, strict=True)]
    assert len({round(move.item(), 4) for move in moved}) == 8  # two workers, two epochs
    assert all(torch.equal(a, b) for a, b in zip(end, data, strict=True))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_a_copied_chain_still_shares_one_generator_and_one_progress(copied):
    chain = Compose(Mixup(), Compose(FOMA(anneal=0.5), GaussianNoise()))
    chain(*make_batch())
    other = copied(chain)
    inner = other.parts[1].parts[0]
    assert inner.generator is other.parts[0].generator is other.generator
    assert other.generator is not chain.generator
    other.progress = 0.5
    assert (inner.probability, chain.progress) == (0.0, 0.0)


def test_what_a_loop_must_know_is_a_property():
    x, y = make_batch()
    plain = [Mixup(), FOMA(), GaussianNoise(), Compose(Mixup(), FOMA())]
    for augmentation in plain:
        augmentation(x, y)
        assert augmentation.weight == 1.0
        properties = augmentation.paired, augmentation.changes_rows, augmentation.weighs
        assert not any(properties)
    paired, more = Mixup(paired=True), FOMA(append=True, weight="lam2")
    more(x, y)
    assert (paired.paired, paired.changes_rows) == (True, True)
    assert (more.paired, more.changes_rows, more.weighs) == (False, True, True)
    assert more.weight == more.params.lam**2
    chain = Compose(paired, more, FOMA(weight="lam"))
    chain(x, y)
    assert (chain.paired, chain.changes_rows, chain.weighs) == (True, True, True)
    assert chain.weight == pytest.approx(chain.params[1].lam ** 2 * chain.params[2].lam)
    chain.p = 0.0
    chain(x, y)
    assert chain.weight == 1.0


def test_collate_fn_wants_pairs():
    with pytest.raises(
        ArgumentTypeError, match=r"must be \(x, y\), got a Tensor.*as_collate_fn\(get="
    ):
        FOMA().as_collate_fn()([torch.ones(3), torch.ones(3)])


def bad(x=None, y=None):
    good_x, good_y = make_batch()
    return (good_x if x is None else x), (good_y if y is None else y)


BAD_BATCHES = {
    "lengths": (bad(y=torch.ones(7)), ArgumentError, r"equal n, got \(16, 4\) and \(7,\)"),
    "empty": (bad(torch.ones(0, 4), torch.ones(0)), ArgumentError, "`x` and `y` must not be empty"),
    "no features": (bad(torch.ones(16, 0)), ArgumentError, "`x` and `y` must not be empty"),
    "x without features": (bad(torch.ones(16)), ArgumentError, r"\(n, \*features\)"),
    "NaN in x": (
        bad(torch.full((16, 4), torch.nan)),
        NonFiniteError,
        "`x` must be finite, got nan",
    ),
    "inf in y": (
        bad(y=torch.full((16,), torch.inf)),
        NonFiniteError,
        "`y` must be finite, got inf",
    ),
    "integer targets": (bad(y=torch.arange(16)), ArgumentTypeError, r"`y` must hold.*y\.float\(\)"),
    "integer inputs": (
        bad(torch.ones(16, 4, dtype=torch.uint8)),
        ArgumentTypeError,
        r"`x` must hold.*torch\.uint8.*x\.float\(\)",
    ),
    "array": (bad(y=torch.ones(16).numpy()), ArgumentTypeError, "`y` must be a torch.Tensor"),
}


@pytest.mark.parametrize("case", BAD_BATCHES)
@pytest.mark.parametrize("options", [{}, {"k": 2}, {"k": "two_nn"}])
def test_bad_batches_are_named(case, options):
    batch, error, message = BAD_BATCHES[case]
    with pytest.raises(error, match=message):
        FOMA(**options)(*batch)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": 1.5}, r"`p` must be in \[0, 1\], got 1.5"),
        ({"p": -0.1}, r"`p` must be in \[0, 1\], got -0.1"),
        ({"anneal": 0.0}, r"`anneal` must be in \(0, 1\], got 0.0"),
        ({"anneal": 2.0}, r"`anneal` must be in \(0, 1\], got 2.0"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ArgumentError, match=message):
        FOMA(**options)


def test_progress_is_a_share():
    with pytest.raises(ArgumentError, match=r"`progress` must be in \[0, 1\], got 3.0"):
        FOMA().progress = 3.0


def test_a_class_without_neutral_parameters_is_refused_in_words():
    class Half(Augmentation):
        def draw(self, x, y):
            return 0.5

        def transform(self, x, y, params):
            return params * x, y

    with pytest.raises(ContractError, match="Half must have `neutral`, the parameters that leave"):
        Half()
