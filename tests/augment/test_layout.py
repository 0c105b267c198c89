"""Images with their channels last stay so."""

import pytest
import torch
from torch import nn

from regaug import ADA, CEMS, FOMA, CMixup, Compose, FeatureMix, GaussianNoise, Mixup, SKMixup

EVERY = pytest.mark.parametrize(
    "make",
    [
        FOMA,
        Mixup,
        CMixup,
        SKMixup,
        FeatureMix,
        CEMS,
        GaussianNoise,
        lambda: ADA(clusters=2),
        lambda: Compose(Mixup(), FOMA()),
        lambda: FOMA(append=True),
        lambda: Mixup(p=0.0),
    ],
)
FORMATS = pytest.mark.parametrize(
    ("shape", "layout"),
    [((6, 3, 4, 5), torch.channels_last), ((6, 3, 2, 4, 5), torch.channels_last_3d)],
)


def make_images(shape):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator), torch.randn(6, 1, generator=generator)


@EVERY
@FORMATS
def test_channels_last_come_back_last_with_the_same_numbers(make, shape, layout):
    x, y = make_images(shape)
    plain, turned = (make().fit(x, y) for _ in range(2))
    new_x, new_y = turned(x.to(memory_format=layout), y)
    assert new_x.is_contiguous(memory_format=layout)
    expected_x, expected_y = plain(x, y)
    torch.testing.assert_close((new_x, new_y), (expected_x, expected_y))


def test_several_tensors_keep_the_layout_of_each():
    x, y = make_images((6, 3, 4, 5))
    batch = {"a": x, "b": x.to(memory_format=torch.channels_last), "c": y}
    new, _ = Mixup()(batch, y)
    assert new["b"].is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(new["a"], new["b"])


def test_groups_and_masks_keep_the_layout():
    x, y = make_images((6, 3, 4, 5))
    x, mask = x.to(memory_format=torch.channels_last), x > -1.0
    for limits in ({"groups": [0, 0, 0, 1, 1, 1]}, {"mask": mask}):
        new, _ = Mixup()(x, y, **limits)
        assert new.is_contiguous(memory_format=torch.channels_last)


def test_at_a_layer_the_layout_is_kept_with_its_gradient():
    x, y = make_images((6, 3, 4, 5))
    net = nn.Sequential(nn.Conv2d(3, 8, 1), nn.Conv2d(8, 1, 1)).to(
        memory_format=torch.channels_last
    )
    layouts = []
    net[1].register_forward_pre_hook(
        lambda _, args: layouts.append(args[0].is_contiguous(memory_format=torch.channels_last))
    )
    prediction, _ = FOMA().at(net, "0")(x.to(memory_format=torch.channels_last), y)
    prediction.sum().backward()
    assert layouts == [True]
    assert net[0].weight.grad.isfinite().all()


def test_one_channel_is_no_layout_of_its_own():
    x, y = make_images((6, 1, 4, 5))
    new, _ = Mixup()(x, y)
    assert new.stride() == x.stride()
