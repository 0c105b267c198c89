"""The net for images."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from regaug import FOMA
from regaug.models import ResNet18


def make_x(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_with_1000_outputs_it_has_the_published_number_of_parameters():
    assert sum(parameter.numel() for parameter in ResNet18(1000).parameters()) == 11_689_512


def test_it_has_18_layers_with_weights():
    model = ResNet18()
    layers = [module for module in model.modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    shortcuts = [name for name, _ in model.named_modules() if name.endswith("shortcut.0")]
    assert len(layers) - len(shortcuts) == 18
    assert len(shortcuts) == 3


@pytest.mark.parametrize("size", [(28, 28), (29, 31), (64, 32)])
def test_stages_halve_the_image_after_the_stem(size):
    model = ResNet18().eval()
    shapes = []
    for i in range(1, 5):
        stage = model.get_submodule(f"stage_{i}")
        stage.register_forward_hook(lambda *call: shapes.append(tuple(call[2].shape[1:])))
    model(make_x(2, 3, *size))
    # Each halving rounds up; the stem makes two.
    halved = [tuple(-(-side // 2**i) for side in size) for i in range(2, 6)]
    assert shapes == [(64 * 2**i, *sides) for i, sides in enumerate(halved)]


def test_images_of_povertymap_train():
    model = ResNet18(channels=8)
    x, y = make_x(2, 8, 224, 224), make_x(2, 1)
    F.mse_loss(*FOMA(rho=0.9).at(model, "stage_4")(x, y)).backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("stage", [1, 2])  # with and without a convolution in the shortcut
def test_a_block_is_the_written_out_formula(stage):
    block = ResNet18().eval().get_submodule(f"stage_{stage}.0")
    x = make_x(2, 64, 9, 7)
    convolutions = [module for module in block.residual if isinstance(module, nn.Conv2d)]
    scale = 1 / (1 + 1e-5) ** 0.5  # what a fresh batch normalization does in eval mode
    out = F.conv2d(x, convolutions[0].weight, stride=stage, padding=1) * scale
    out = F.conv2d(out.relu(), convolutions[1].weight, padding=1) * scale
    around = x if stage == 1 else F.conv2d(x, block.shortcut[0].weight, stride=2) * scale
    torch.testing.assert_close(block(x), (out + around).relu(), rtol=1e-4, atol=1e-5)


def test_convolutions_start_with_the_spread_of_kaiming():
    for module in ResNet18().modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels * module.kernel_size[0] * module.kernel_size[1]
            spread = module.weight.std().item() * (fan_out / 2) ** 0.5
            assert spread == pytest.approx(1.0, abs=0.05)
