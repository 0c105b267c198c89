"""Augmentation in PyTorch Lightning: a callback, for ``lightning`` and ``pytorch_lightning``."""

from regaug.integrations.lightning.callback import AugmentCallback

__all__ = ["AugmentCallback"]
