"""Networks: the paper's by kind of data, the user's own, and what tells one from another."""

import ast
import re
import zlib
from collections.abc import Callable, Sequence
from inspect import getsource
from textwrap import dedent
from tokenize import TokenError
from typing import Any

from torch import nn

from regaug.data.base import Split
from regaug.exceptions import ArgumentTypeError
from regaug.models import DeepDTA, LSTNet, R2Plus1D18, ResNet18
from regaug.training.estimators import call_factory

MakeNet = Callable[..., nn.Module]


def make_lstnet(split: Split, seed: int) -> nn.Module:
    """Make the net for a series, wide for one of many columns."""
    window, columns = split.train.x.shape[1:]
    hidden = 50 if columns < 100 else 100
    return LSTNet(columns, window=window, hidden_cnn=hidden, hidden_rnn=hidden, seed=seed)


def make_image_net(split: Split, seed: int) -> nn.Module:
    """Make the net for images."""
    return ResNet18(split.train.y.shape[1], channels=split.train.x.shape[1], seed=seed)


def make_pair_net(split: Split, seed: int) -> nn.Module:
    """Make the net for pairs of a drug and a protein, as in C-Mixup's scripts."""
    return DeepDTA(activation=None, seed=seed)


def make_video_net(split: Split, seed: int) -> nn.Module:
    """Make the net for videos."""
    return R2Plus1D18(split.train.y.shape[1], seed=seed)


# The paper's network for everything that is no table.
NETWORKS: dict[str, MakeNet] = {
    "series": make_lstnet,
    "image": make_image_net,
    "pair": make_pair_net,
    "video": make_video_net,
}


def make_own_net(make: Any, split: Split, seed: int, places: Sequence[str] | None) -> nn.Module:
    """Make the net of the user's own; ``places`` are its places if it does not name them itself."""
    net = call_factory(make, split, seed)
    if not isinstance(net, nn.Module):
        raise ArgumentTypeError(f"`model` must return a torch.nn.Module, got {type(net).__name__}.")
    if places is not None:
        # What torch.jit.script makes takes no attribute any more.
        object.__setattr__(net, "places", tuple(places))
    return net


def digest_network(net: nn.Module, make: Any) -> str:
    """Return eight digits that differ for other layers, or another code of what makes them."""
    # What has no better words for itself says where in memory it is.
    layers = re.sub(r"\b0x[0-9a-fA-F]+", "", repr(net))
    words = [layers, code_of(type(net)), code_of(make)]
    return f"{zlib.crc32(chr(10).join(words).encode()):08x}"


def code_of(thing: Any) -> str:
    """Return the code of a class or a function of the user's own; empty if it is not at hand."""
    if str(getattr(thing, "__module__", "")).partition(".")[0] == "regaug":
        return ""
    try:
        return ast.dump(ast.parse(dedent(getsource(thing))))
    # Typed in, a part of a line, or not Python.
    except (OSError, SyntaxError, TokenError, TypeError):
        return ""
