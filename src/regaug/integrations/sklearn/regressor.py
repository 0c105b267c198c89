"""A regressor for scikit-learn: an ensemble of small nets, trained with augmentation."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from regaug import _random
from regaug.data.base import Part, Split
from regaug.data.scaling import Scaler
from regaug.ensemble import Component, Ensemble
from regaug.ensemble.contents import AUTO
from regaug.ensemble.members import train_members
from regaug.ensemble.prepared import default_names
from regaug.ensemble.scale import Bounds, TargetScale
from regaug.integrations.sklearn.folder import KEY, as_plain, make_preparation, read_about
from regaug.integrations.sklearn.parameters import check_regressor, hidden_widths, patience
from regaug.integrations.sklearn.rows import StoppingRule
from regaug.problems import Problem
from regaug.studies.auto import choose_run
from regaug.studies.plan import QUICK_METHODS
from regaug.training import RunResult, Settings
from regaug.training.recipe import HIDDEN, default_recipe

Values = NDArray[np.float64]
_FLOATS = (np.float64, np.float32)  # what is none of these becomes the first
# Where this estimator starts from other settings than the method does. Beside annealing, batches of
# nearest targets gained nothing on the average of small tables, and they take longer to make.
STARTS = {name: {"sampler": "random"} for name in ("foma", "foma-rho")}


class AugmentedMLPRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """An ensemble of small nets, trained with augmentation; predicts the mean of its members.

    Inputs and targets are standardized inside, and the nets are trained side by side as one stack.
    Parameters that scikit-learn's ``MLPRegressor`` has too have the same names and meanings here.
    There is no ``sample_weight``, which mini-batches cannot honor exactly.

    Args:
        method: One of ``regaug.methods.names()``; ``"erm"`` is plain training. ``"auto"`` takes
            what a quick study of five inner splits recommends: plain training, mixup, C-Mixup, ADA
            or FOMA_rho; plain training if nothing differs from it, and with fewer than 50 rows.
        method_settings: Settings of the method that differ from its defaults, such as
            ``{"rho": 0.95}``; None with ``"auto"``. The methods of FOMA have random batches here;
            ``{"sampler": "nearest"}`` gives those of the paper.
        members: Number of nets, from 1 to 1,000.
        hidden_layer_sizes: Widths of the hidden layers, one or more.
        frequencies: Periodic features of every number column
            (:class:`regaug.models.mlp.PeriodicFeatures`); 0 for none.
        linear: Whether a ridge regression comes first, and the nets learn what it leaves.
        relevance: Whether columns that matter more are larger inputs of the nets.
        average: Share that the running mean of the weights keeps in every epoch; 0 for no mean.
        max_iter: Passes over the training rows, at most; a ``ConvergenceWarning`` says when most
            nets would have gone on.
        batch_size: Rows in a batch; ``"auto"`` is 32, and more from 1,024 rows on. Fewer training
            rows than that make one batch.
        learning_rate_init: Step size of the optimizer, AdamW.
        weight_decay: How much the weights shrink, in units of the step size.
        early_stopping: Each net puts some rows aside, other rows than the other nets do, and keeps
            the epoch that does best on them. With fewer than 5 rows to put aside, and if False, all
            rows are trained on and the last epoch is kept.
        validation_fraction: Share of the rows that a net puts aside, in (0, 0.5].
        n_iter_no_change: Stop a net after so many epochs without progress on those rows, or after
            half as many as led to its best one if that is more; ``np.inf`` never stops one.
        random_state: As everywhere in scikit-learn: an int gives the same model in every call.
        verbose: Show a progress bar.

    Attributes:
        model_: The fitted ensemble, a :class:`regaug.ensemble.Ensemble` without intervals.
        method_: The method that was used.
        inner_errors_: With ``"auto"``, the inner error of every method, in standard deviations of
            the targets; empty otherwise.
        n_iter_: Epochs of the net that took the most.
        n_features_in_, feature_names_in_, n_outputs_: As everywhere in scikit-learn.

    Example:
        >>> from sklearn.datasets import make_regression
        >>> X, y = make_regression(100, 5, noise=20.0, random_state=0)
        >>> model = AugmentedMLPRegressor(members=2, random_state=0).fit(X[:80], y[:80])
        >>> model.predict(X[80:]).shape, model.score(X[80:], y[80:]) > 0.9
        ((20,), True)
    """

    def __init__(
        self,
        method: str = "foma-rho",
        *,
        method_settings: Mapping[str, Any] | None = None,
        members: int = 8,
        hidden_layer_sizes: Sequence[int] = HIDDEN,
        frequencies: int = 8,
        linear: bool = True,
        relevance: bool = True,
        average: float = 0.8,
        max_iter: int = 200,
        batch_size: int | str = "auto",
        learning_rate_init: float = 2e-3,
        weight_decay: float = 1e-2,
        early_stopping: bool = True,
        validation_fraction: float = 0.125,
        n_iter_no_change: float = 15,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.method_settings = method_settings
        self.members = members
        self.hidden_layer_sizes = hidden_layer_sizes
        self.frequencies = frequencies
        self.linear = linear
        self.relevance = relevance
        self.average = average
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose

    @_random.plain_defaults()
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803
        """Train the nets on inputs ``(n, d)`` and targets ``(n,)`` or ``(n, m)``.

        Arrays or frames of finite numbers, at least two rows. Returns this estimator.
        """
        inputs, targets = validate_data(
            self, X, y, dtype=_FLOATS, multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        check_regressor(self.get_params(deep=False))
        self._is_single = inputs.dtype == targets.dtype == np.float32
        # Copies: torch warns of memory that must not be written to. The order of a frame's numbers
        # in memory must not change how they are rounded.
        inputs, targets = (np.array(part, np.float64, order="C") for part in (inputs, targets))
        settings, hidden = self._settings(len(targets)), hidden_widths(self.hidden_layer_sizes)
        stopping = StoppingRule(bool(self.early_stopping), self.validation_fraction)

        columns = targets.reshape(len(targets), -1)
        x_scaler, scale = (
            Scaler.fit(torch.from_numpy(inputs)),
            TargetScale.fit(torch.from_numpy(columns)),
        )
        whole = Part(
            x_scaler.transform(torch.from_numpy(inputs)).float(),
            scale.transform(torch.from_numpy(columns)).float(),
            np.arange(len(targets)),
        )
        method, errors = self.method, dict[str, float]()
        if method == AUTO:
            method, errors = _choose_method(
                stopping.inner_splits(whole, settings.seed), settings, hidden
            )
        trained = train_members(
            stopping.splits(whole, int(self.members), settings.seed),
            method,
            _start(method, settings),
            hidden=hidden,
            scale=scale,
            progress=bool(self.verbose),
        )
        self.model_ = Ensemble(
            targets=_target_names(y, columns.shape[1]),
            method=method,
            preparation=make_preparation(x_scaler, self._feature_names()),
            components=(Component(method, 1.0, trained.members, trained.settings),),
            bounds=Bounds.fit(torch.from_numpy(columns)),
            scale=scale,
        )
        self.method_, self.inner_errors_ = method, errors
        self.n_iter_ = max(len(result.history) for result in trained.results)
        self.n_outputs_, self._is_flat = columns.shape[1], targets.ndim == 1
        _warn_of_too_few_epochs(trained.results, settings)
        return self

    @_random.plain_defaults()
    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:  # noqa: N803
        """Predict rows: ``(n,)`` or ``(n, m)``, as ``y`` had; float32 if all of `fit` was.

        ``return_std`` also returns the standard deviation over the members: how much they disagree,
        not how far off they may be.
        """
        check_is_fitted(self)
        inputs = validate_data(self, X, dtype=_FLOATS, reset=False)
        rows = torch.from_numpy(np.array(inputs, np.float64, order="C"))
        found = self.model_.predict_inputs(self.model_.preparation.scaler.transform(rows))
        both = found.mean, found.spread
        dtype = np.float32 if self._is_single else np.float64
        mean, spread = (
            (part[:, 0] if self._is_flat else part).numpy().astype(dtype, copy=False)
            for part in both
        )
        return (mean, spread) if return_std else mean

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the fitted estimator to a folder: ``model.safetensors`` and ``model.json``.

        It is a model folder as any other, so that ``regaug predict`` can use it: by the names of
        columns if it was fitted on a frame, by their order otherwise. A model that regaug has
        written there is replaced, two other files of these names by ``force`` alone. A
        ``random_state`` that is an object is saved as None.
        """
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        about = {
            "kind": type(self).__name__,
            "parameters": {name: as_plain(name, value) for name, value in parameters.items()},
            "feature_names": self._feature_names(),
            "is_flat": self._is_flat,
            "is_single": self._is_single,
            "n_iter": self.n_iter_,
            "inner_errors": self.inner_errors_,
        }
        replace(self.model_, about={KEY: about}).save(folder, force=force)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read an estimator that :meth:`save` wrote; a ``CheckpointError`` if it is damaged."""
        model = Ensemble.load(folder)
        about = read_about(model, cls.__name__, cls._get_param_names())
        estimator = cls(**about["parameters"])
        estimator.model_, estimator.method_ = replace(model, about={}), model.method
        estimator.inner_errors_, estimator.n_iter_ = about["inner_errors"], about["n_iter"]
        estimator.n_outputs_, estimator._is_flat = len(model.targets), about["is_flat"]
        estimator._is_single = about["is_single"]
        estimator.n_features_in_ = len(model.preparation.scaler.mean)
        if about["feature_names"] is not None:
            estimator.feature_names_in_ = np.array(about["feature_names"], dtype=object)
        return estimator

    def _settings(self, rows: int) -> Settings:
        size = self.batch_size
        if isinstance(size, str):
            size = default_recipe(rows).batch_size
        return Settings(
            epochs=self.max_iter,
            batch_size=size,
            learning_rate=self.learning_rate_init,
            weight_decay=self.weight_decay,
            patience=patience(self.n_iter_no_change),
            patience_share=0.5,
            frequencies=self.frequencies,
            linear=bool(self.linear),
            relevance=bool(self.relevance),
            average=self.average,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            method_settings=dict(self.method_settings or {}),
        )

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _start(method: str, settings: Settings) -> Settings:
    """Return the settings of a method where they are not given otherwise."""
    return replace(settings, method_settings={**STARTS.get(method, {}), **settings.method_settings})


def _choose_method(
    splits: Sequence[Split], settings: Settings, hidden: Sequence[int]
) -> tuple[str, dict[str, float]]:
    """Return the method that a small study chooses, and the inner errors of all that it tried."""
    problem = Problem(splits, is_scaled=True, hidden=hidden)
    own = {name: _start(name, settings) for name in QUICK_METHODS}
    choice = choose_run(problem, settings=own, seed=settings.seed)
    return choice.run.method, dict(choice.errors)


def _warn_of_too_few_epochs(results: Sequence[RunResult], settings: Settings) -> None:
    """Warn, as scikit-learn does, where most nets that could stop early went on to the end."""
    could_stop = [own for own in results if not math.isnan(own.history[-1].validation)]
    to_the_end = sum(own.ending == "finished" for own in could_stop)
    if settings.patience is not None and 2 * to_the_end > len(could_stop):
        warnings.warn(
            f"{to_the_end} of {len(could_stop)} nets were trained for all max_iter="
            f"{settings.epochs} epochs and might still get better. Increase `max_iter`.",
            ConvergenceWarning,
            stacklevel=4,  # the defaults of torch are changed in between
        )


def _target_names(y: Any, targets: int) -> tuple[str, ...]:
    """Return the names of the columns of a frame, or of a series, if they can be told apart."""
    names = tuple(str(name) for name in getattr(y, "columns", [getattr(y, "name", None)]))
    is_named = len(set(names)) == targets and names != ("None",)
    return names if is_named else default_names(targets)
