"""The net for videos."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from regaug import FOMA
from regaug.exceptions import ArgumentError
from regaug.models import R2Plus1D18


def make_x(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def model():
    return R2Plus1D18().eval()


def test_with_400_outputs_it_has_the_published_number_of_parameters():
    assert sum(parameter.numel() for parameter in R2Plus1D18(400).parameters()) == 31_505_325


def test_convolutions_are_over_space_or_over_time(model):
    kernels = {
        module.kernel_size
        for name, module in model.named_modules()
        if isinstance(module, nn.Conv3d) and "shortcut" not in name
    }
    assert kernels == {(1, 7, 7), (1, 3, 3), (3, 1, 1)}


def test_channels_between_space_and_time_are_those_of_the_original(model):
    between = [
        module.out_channels
        for name, module in model.named_modules()
        if isinstance(module, nn.Conv3d) and module.kernel_size[0] == 1 and "shortcut" not in name
    ]
    pairs = [144, 144, 230, 288, 460, 576, 921, 1152]  # both convolutions of a block
    assert between == [45, *(width for width in pairs for _ in range(2))]


@pytest.mark.parametrize("clip", [(8, 32, 32), (5, 19, 17)])
def test_stages_halve_the_clip_after_the_stem(model, clip):
    out, shapes = model.stem(make_x(1, 3, *clip)), []
    for i in range(1, 5):
        out = model.get_submodule(f"stage_{i}")(out)
        shapes.append(tuple(out.shape[1:]))
    frames, height, width = clip
    sides = [(frames, -(-height // 2), -(-width // 2))]  # the stem keeps all frames
    for _ in range(3):
        sides.append(tuple(-(-side // 2) for side in sides[-1]))
    assert shapes == [(64 * 2**i, *side) for i, side in enumerate(sides)]


@pytest.mark.parametrize("stage", [1, 2])  # with and without a convolution in the shortcut
def test_a_block_is_the_written_out_formula(model, stage):
    block = model.get_submodule(f"stage_{stage}.0")
    x = make_x(1, 64, 4, 6, 5)
    weights = [module.weight for module in block.residual if isinstance(module, nn.Conv3d)]
    scale = 1 / (1 + 1e-5) ** 0.5  # what a fresh batch normalization does in eval mode
    out = x
    for i, stride in enumerate((stage, 1)):
        space, time = (1, stride, stride), (stride, 1, 1)
        out = F.conv3d(out, weights[2 * i], stride=space, padding=(0, 1, 1)) * scale
        out = F.conv3d(out.relu(), weights[2 * i + 1], stride=time, padding=(1, 0, 0)) * scale
        out = out.relu() if i == 0 else out
    around = x if stage == 1 else F.conv3d(x, block.shortcut[0].weight, stride=2) * scale
    torch.testing.assert_close(block(x), (out + around).relu(), rtol=1e-4, atol=1e-5)


def test_small_clips_train():
    model = R2Plus1D18(bias=55.6)
    x, y = make_x(2, 3, 8, 32, 32), 55.6 + make_x(2, 1)
    F.mse_loss(*FOMA(rho=0.9).at(model, "stage_4")(x, y)).backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_the_bias_moves_the_first_predictions():
    biased, plain = R2Plus1D18(2, bias=55.6), R2Plus1D18(2)
    assert biased.head.bias.tolist() == pytest.approx([55.6, 55.6])
    assert plain.head.bias.abs().max() < 0.1
    assert torch.equal(biased.head.weight, plain.head.weight)


def test_a_bias_that_is_no_number_is_refused():
    with pytest.raises(ArgumentError, match="`bias` must be finite, got nan"):
        R2Plus1D18(bias=float("nan"))
