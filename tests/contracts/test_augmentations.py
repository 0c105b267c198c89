"""What every augmentation keeps to. A new one is covered by being public."""

import pytest
import torch
from sklearn.linear_model import Ridge
from torch.utils.data import DataLoader, TensorDataset

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
from regaug.testing.augmentations import AUGMENTATION_CHECKS, make_ready
from regaug.testing.batches import make_batch

AUGMENTATIONS = {
    name.lower(): getattr(augment, name) for name in augment.__all__ if name != "Augmentation"
}
# Every augmentation with its defaults, and settings that change what it does to a batch.
CASES = {
    **AUGMENTATIONS,
    # With a teacher that is quick: the others are tried as one of the methods.
    "teacherrows": lambda: TeacherRows(Ridge(), folds=2, count=2),
    "teacher-rows of its own": lambda: TeacherRows(Ridge(), rows=FeatureMix(), count=2),
    "foma two_nn": lambda: FOMA(k="two_nn"),
    "foma two_nn_data": lambda: FOMA(k="two_nn_data"),
    "foma leading": lambda: FOMA(k=2, scale="leading", center=True),
    "mixup paired": lambda: Mixup(paired=True),
    "mixup assignment": lambda: Mixup(pairs="assignment"),
    "mixup neighbors": lambda: Mixup(pairs="neighbors"),
    "mixup keep": lambda: Mixup(spread="keep"),
    "sk-mixup inputs": lambda: SKMixup(distance="inputs", width=0.3),
    "sk-mixup two warps": lambda: SKMixup(2.0, alpha_y=0.5, width_y=0.2),
    "c-mixup paired": lambda: CMixup(paired=True),
    "noise relative": lambda: GaussianNoise(0.1, relative=0.2, targets="keep"),
    "ada": lambda: ADA(clusters=4),
    "ada targets": lambda: ADA(clusters=4, cluster_by="targets"),
    "cems neighbors": lambda: CEMS(neighbors=8),
    "feature-mix information": lambda: FeatureMix(targets="information"),
    "feature-mix keep": lambda: FeatureMix(rate=0.3, targets="keep"),
    "compose two": lambda: Compose(FOMA(), GaussianNoise(0.1)),
    "weak": lambda: FOMA(p=0.3, append=True, anneal=0.5, total_steps=10),
}


# Variations of classes that are among the others too.
VARIED = (
    "sk-mixup inputs",
    "sk-mixup two warps",
    "noise relative",
    "feature-mix keep",
    "teacher-rows of its own",
)


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.slow) if name in VARIED else name for name in CASES
    ]
)
def augmentation(request):
    return CASES[request.param]()


@pytest.mark.parametrize("check", AUGMENTATION_CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_missing(augmentation, check):
    assert list(check(augmentation)) == []


def test_what_is_checked_stays_as_it_was(augmentation):
    before = repr(augmentation), augmentation.generator.get_state(), augmentation.training
    for check in AUGMENTATION_CHECKS:
        list(check(augmentation))
    after = repr(augmentation), augmentation.generator.get_state(), augmentation.training
    assert before[0] == after[0]
    assert torch.equal(before[1], after[1])
    assert before[2] == after[2]


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("foma", "identity"))])
def test_the_order_of_rows_does_not_matter_to_a_transform(name):
    x, y = make_batch(dtype=torch.float64)  # the parameters of the others belong to the rows
    augmentation = make_ready(CASES[name](), x, y)
    params = augmentation.draw(x, y)
    new_x, new_y = augmentation.transform(x, y, params)
    flipped_x, flipped_y = augmentation.transform(x.flip(0), y.flip(0), params)
    torch.testing.assert_close(flipped_x.flip(0), new_x)
    torch.testing.assert_close(flipped_y.flip(0), new_y)


def test_goes_to_the_workers_of_a_loader(augmentation):
    x, y = make_batch((32, 3), (32,))
    loader = DataLoader(
        TensorDataset(x, y),
        8,
        num_workers=2,
        collate_fn=make_ready(augmentation, x, y).as_collate_fn(),
        generator=torch.Generator().manual_seed(0),
        multiprocessing_context="fork",
    )
    batches = list(loader)
    assert len(batches) == 4
    assert all(tensor.isfinite().all() for batch in batches for tensor in batch)
