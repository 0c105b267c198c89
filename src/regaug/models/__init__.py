"""Networks: one for each kind of data of the paper, each with named latent places."""

from regaug.models.deepdta import DeepDTA
from regaug.models.lstnet import LSTNet
from regaug.models.mlp import MLP
from regaug.models.r2plus1d import R2Plus1D18
from regaug.models.resnet import ResNet18

__all__ = ["MLP", "DeepDTA", "LSTNet", "R2Plus1D18", "ResNet18"]
