"""The net for pairs of a drug and a protein: convolutions over both strings."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_choice, check_integer
from regaug.exceptions import ArgumentError
from regaug.models.peak import PeakConvolution

_CHANNELS = (32, 64, 96)
# Symbols and length of a string, as in regaug.data.datasets.pairs: no import for two numbers.
_DRUG, _PROTEIN = (63, 100), (26, 1000)
_DRUG_KERNELS, _PROTEIN_KERNELS = (4, 6, 8), (4, 8, 12)
_ENCODED = 256  # values that each string becomes
_HIDDEN = (256, 128, 128)


class DeepDTA(nn.Module):
    """DeepDTA (Öztürk et al., 2018) on one-hot strings, in the sizes of TDC's DTI-DG benchmark.

    Each string passes three convolutions with ReLU, a maximum over its positions and a linear map
    to 256 values. The 512 of both pass hidden layers of 256, 128 and 128 values to a linear head.

    The script of C-Mixup, whose networks the paper takes over, has no activation in the hidden
    layers: they collapse into one linear map, so the prediction is a function of the drug plus one
    of the protein. ``activation=None`` is that net; DeepDTA itself, and the default here, has ReLU.

    Args:
        outputs: Number of targets, at least 1.
        drug: Symbols and positions of a drug, ``(63, 100)``; at least 16 positions.
        protein: Symbols and positions of a protein, ``(26, 1000)``; at least 22 positions.
        activation: What follows each hidden layer, ``"relu"``, or None for nothing.
        seed: Decides the initial weights.

    Attributes:
        places: ``"hidden_3"``, just before the head, is the default latent place; then
            ``"encoder"`` (n, 512), ``"hidden_1"`` and ``"hidden_2"``.

    Example:
        >>> net = DeepDTA(drug=(4, 20), protein=(3, 30))
        >>> net(torch.zeros(2, 4 * 20 + 3 * 30)).shape
        torch.Size([2, 1])
    """

    places: tuple[str, ...] = ("hidden_3", "encoder", "hidden_1", "hidden_2")

    def __init__(
        self,
        outputs: int = 1,
        *,
        drug: Sequence[int] = _DRUG,
        protein: Sequence[int] = _PROTEIN,
        activation: Literal["relu"] | None = "relu",
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.outputs = check_integer("outputs", outputs, 1)
        self.drug = _check_string("drug", drug, _DRUG_KERNELS)
        self.protein = _check_string("protein", protein, _PROTEIN_KERNELS)
        self.activation = check_choice("activation", activation, ("relu", None))
        self.seed = check_integer("seed", seed, 0)
        with _random.seeded(self.seed):
            self.encoder = _PairEncoder(self.drug, self.protein)
            for i, (before, after) in enumerate(pairwise((2 * _ENCODED, *_HIDDEN)), start=1):
                activations = [nn.ReLU()] if self.activation == "relu" else []
                layers = nn.Sequential(nn.Linear(before, after), *activations)
                self.add_module(f"hidden_{i}", layers)
            self.head = nn.Linear(_HIDDEN[-1], self.outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Predict targets ``(n, outputs)`` for pairs ``(n, values)`` as the data sets give them.

        A row is flat: the drug's symbols x positions in one-hot code, then the protein's.
        """
        n_drug, n_protein = self.drug[0] * self.drug[1], self.protein[0] * self.protein[1]
        if x.ndim != 2 or x.shape[1] != n_drug + n_protein:
            raise ArgumentError(
                f"`x` must be (n, {n_drug + n_protein}), {n_drug} values of a drug and "
                f"{n_protein} of a protein, got shape {tuple(x.shape)}."
            )
        for place in ("encoder", "hidden_1", "hidden_2", "hidden_3", "head"):
            x = getattr(self, place)(x)
        return x


class _PairEncoder(nn.Module):
    """Encode both strings, ``(n, values)`` to ``(n, 512)``."""

    def __init__(self, drug: tuple[int, int], protein: tuple[int, int]) -> None:
        super().__init__()
        self.drug = _StringEncoder(drug, _DRUG_KERNELS)
        self.protein = _StringEncoder(protein, _PROTEIN_KERNELS)

    def forward(self, x: Tensor) -> Tensor:
        n_drug = self.drug.shape[0] * self.drug.shape[1]
        return torch.cat([self.drug(x[:, :n_drug]), self.protein(x[:, n_drug:])], dim=1)


class _StringEncoder(nn.Module):
    """Encode one string, ``(n, symbols * positions)`` to ``(n, 256)``."""

    def __init__(self, shape: tuple[int, int], kernels: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape
        layers: list[nn.Module] = []
        *sizes, last = zip(pairwise((shape[0], *_CHANNELS)), kernels, strict=True)
        for (before, after), kernel in sizes:
            layers += [nn.Conv1d(before, after, kernel), nn.ReLU()]
        layers.append(PeakConvolution(*last[0], last[1]))
        self.convolutions = nn.Sequential(*layers)
        self.linear = nn.Linear(_CHANNELS[-1], _ENCODED)

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(self.convolutions(x.reshape(len(x), *self.shape)))
        return x


def _check_string(name: str, shape: Sequence[int], kernels: tuple[int, ...]) -> tuple[int, int]:
    """Return the numbers of symbols and positions if the convolutions fit."""
    if len(shape) != 2:
        raise ArgumentError(f"`{name}` must be (symbols, positions), got {shape!r}.")
    shortest = sum(kernels) - len(kernels) + 1
    return (
        check_integer(f"{name}[0]", shape[0], 1),
        check_integer(f"{name}[1]", shape[1], shortest, hint="The convolutions need as many."),
    )
