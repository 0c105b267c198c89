"""Networks: one for each kind of data of the paper, each with named latent places."""

from torch import nn

from regaug.models.deepdta import DeepDTA
from regaug.models.lstnet import LSTNet
from regaug.models.mlp import MLP
from regaug.models.r2plus1d import R2Plus1D18
from regaug.models.resnet import ResNet18

# Every network by its name; ``MODELS[name](**net.config())`` is a net of the same shape.
MODELS: dict[str, type[nn.Module]] = {
    "mlp": MLP,
    "lstnet": LSTNet,
    "resnet18": ResNet18,
    "deepdta": DeepDTA,
    "r2plus1d18": R2Plus1D18,
}

__all__ = ["MLP", "MODELS", "DeepDTA", "LSTNet", "R2Plus1D18", "ResNet18"]
