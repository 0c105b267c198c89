"""The net for series: convolution, recurrence at two paces, and an autoregression beside them."""

from typing import Literal

import torch
from torch import Tensor, nn

from regaug import _random
from regaug._checks import check_choice, check_integer, check_range
from regaug.exceptions import ArgumentError, PlaceError
from regaug.models.recurrence import LastState

Activation = Literal["sigmoid", "tanh"]
_ACTIVATIONS = {None: nn.Identity, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}


class LSTNet(nn.Module):
    """Long- and short-term time-series network (Lai et al., SIGIR 2018).

    A convolution over time feeds a GRU and a second GRU that steps ``skip`` rows at a time, once
    for each of the ``skip`` phases. A linear map of their last states and the highway, a linear
    autoregression with the same weights for every column, add up to the prediction. The defaults
    are those for Exchange-Rate; Electricity takes 100 for ``hidden_cnn`` and ``hidden_rnn``.

    The highway reads the input rows themselves. What an augmentation changes at ``"convolution"``
    does not reach it, as in the paper's script; so there the number of rows must stay as it is.
    At ``"features"`` the highway's share is part of what is augmented.

    Args:
        outputs: Columns of the series, of a window and of the row it predicts, at least 1.
        window: Rows of an input.
        hidden_cnn: Channels of the convolution.
        hidden_rnn: Size of the state of the GRU.
        hidden_skip: Size of the state of the skip-GRU.
        kernel: Rows that the convolution sees at once, at most ``window``.
        skip: Rows in a step of the skip-GRU, at most ``window - kernel``; 0 leaves that GRU out.
        highway: Rows that the autoregression sees, at most ``window``; 0 leaves it out.
        dropout: Share of values that are dropped after each of the three parts, in [0, 1].
        output_activation: What is applied to the prediction, ``"sigmoid"`` or ``"tanh"``; None for
            nothing.
        seed: Decides the initial weights.

    Attributes:
        places: ``"convolution"`` (n, channels, time), the default latent place, and ``"features"``
            (n, states of both GRUs and highway).

    Example:
        >>> net = LSTNet(8)
        >>> net(torch.zeros(4, 168, 8)).shape
        torch.Size([4, 8])
    """

    places: tuple[str, ...] = ("convolution", "features")

    def __init__(
        self,
        outputs: int,
        *,
        window: int = 168,
        hidden_cnn: int = 50,
        hidden_rnn: int = 50,
        hidden_skip: int = 5,
        kernel: int = 6,
        skip: int = 24,
        highway: int = 24,
        dropout: float = 0.2,
        output_activation: Activation | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.outputs = check_integer("outputs", outputs, 1)
        self.window = check_integer("window", window, 1)
        self.hidden_cnn = check_integer("hidden_cnn", hidden_cnn, 1)
        self.hidden_rnn = check_integer("hidden_rnn", hidden_rnn, 1)
        self.hidden_skip = check_integer("hidden_skip", hidden_skip, 1)
        self.kernel = check_integer("kernel", kernel, 1, self.window)
        hint = "It must leave one step within `window` - `kernel` rows; 0 leaves the skip-GRU out."
        self.skip = check_integer("skip", skip, 0, self.window - self.kernel, hint=hint)
        self.highway = check_integer("highway", highway, 0, self.window)
        self.dropout = check_range("dropout", dropout, 0.0, 1.0)
        self.output_activation = check_choice(
            "output_activation", output_activation, tuple(_ACTIVATIONS)
        )
        self.seed = check_integer("seed", seed, 0)
        with _random.seeded(self.seed):
            convolution = nn.Conv1d(self.outputs, self.hidden_cnn, self.kernel)
            self.convolution = nn.Sequential(convolution, nn.ReLU(), nn.Dropout(self.dropout))
            self.recurrence = LastState(self.hidden_cnn, self.hidden_rnn)
            n_states = self.hidden_rnn + self.skip * self.hidden_skip
            if self.skip:
                self.skip_recurrence = nn.GRU(self.hidden_cnn, self.hidden_skip, batch_first=True)
            self.drop = nn.Dropout(self.dropout)
            self.features = _Join()
            self.head = nn.Linear(n_states, self.outputs)
            if self.highway:
                self.autoregression = nn.Linear(self.highway, 1)
            self.activation = _ACTIVATIONS[self.output_activation]()

    def forward(self, x: Tensor) -> Tensor:
        """Predict a row ``(n, outputs)`` for windows ``(n, window, outputs)``."""
        if x.ndim != 3 or x.shape[1:] != (self.window, self.outputs):
            raise ArgumentError(
                f"`x` must be (n, window, outputs) with {self.window} rows and {self.outputs} "
                f"columns, got shape {tuple(x.shape)}."
            )
        steps = self.convolution(x.transpose(1, 2)).transpose(1, 2)  # (n, time, channels)
        parts = [self.drop(self.recurrence(steps))]
        if self.skip:
            parts.append(self.drop(self._skip_states(steps)))
        if self.highway:
            parts.append(self.autoregression(x[:, -self.highway :].transpose(1, 2)).squeeze(2))
        features = self.features(*parts)
        n_states = self.head.in_features
        x = self.head(features[:, :n_states])
        x = self.activation(x + features[:, n_states:] if self.highway else x)
        return x

    def _skip_states(self, steps: Tensor) -> Tensor:
        """Return the last states of all phases side by side, ``(n, skip * hidden_skip)``."""
        n, channels = len(steps), steps.shape[2]
        n_steps = (self.window - self.kernel) // self.skip
        phases = steps[:, -n_steps * self.skip :].reshape(n, n_steps, self.skip, channels)
        phases = phases.transpose(1, 2).reshape(n * self.skip, n_steps, channels)
        state: Tensor = self.skip_recurrence(phases)[1]
        return state.reshape(n, self.skip * self.hidden_skip)


class _Join(nn.Module):
    """Put what the last layer needs side by side: a module, so that an augmentation can act."""

    def forward(self, *parts: Tensor) -> Tensor:
        """Join parts ``(n, ...)`` along their columns."""
        rows = [len(part) for part in parts]
        if len(set(rows)) > 1:
            raise PlaceError(
                f"The augmentation at 'convolution' turned {rows[-1]} rows into {rows[0]}, but the "
                "highway of LSTNet reads the inputs as they were. Act at 'features' or on the "
                "input instead, or build the net with `highway=0`."
            )
        return torch.cat(parts, dim=1)
