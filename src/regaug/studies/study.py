"""What a study has found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Self

from regaug._checks import check_integer
from regaug._files import JSON
from regaug._registry import lookup
from regaug.data.base import Data
from regaug.ensemble import Ensemble, fit
from regaug.ensemble.candidates import Observer as FitObserver
from regaug.ensemble.diagnosis import Diagnosis, read_diagnosis
from regaug.ensemble.entry import BLENDS
from regaug.exceptions import ArgumentError, RegaugError, StoreError
from regaug.formatting import as_html, count
from regaug.metrics import Scores
from regaug.runs.nets import net_file
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import STUDY, WAY_OUT, Store, read_study
from regaug.studies.budget import Budget
from regaug.studies.checks import Check, find_checks
from regaug.studies.comparisons import compare_beside, compare_rows
from regaug.studies.config import StudyConfig
from regaug.studies.details import Details, describe_rows
from regaug.studies.ensembles import judge
from regaug.studies.facts import Facts, read_facts
from regaug.studies.frames import leaderboard_frame, runs_frame
from regaug.studies.latest import find_study
from regaug.studies.leaderboard import best_rows, leaderboard
from regaug.studies.selection import finished_splits, select
from regaug.studies.statistics import Comparison
from regaug.studies.steps import Steps
from regaug.studies.targets import TARGETS, Targets, read_targets
from regaug.studies.verdict import Verdict, make_verdict
from regaug.training.recipe import HIDDEN, NETWORK_SPACE, SPACE
from regaug.training.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

MODEL = "model"
WIDTH = 100  # of a line that is printed


def _read_config(folder: Path, values: Mapping[str, JSON]) -> StudyConfig:
    try:
        return StudyConfig.from_dict(values)
    except StoreError:
        raise
    except RegaugError as error:
        raise StoreError(f"Cannot use {folder / STUDY}: {error} {WAY_OUT}") from error


@dataclass(frozen=True, eq=False)
class Study:
    """A comparison of methods on one problem; ``print(study)`` says what it has found.

    Attributes:
        config: What was asked for.
        records: Everything that was finished.
        chosen: For every method the single net that each split has chosen, by its validation error;
            for every baseline its record.
        best: For every method the run with the best recipe and settings over all splits: what to
            train with next. (What is compared is each split's own choice.)
        trials: How many settings of every method were compared.
        scores: What every row is worth on the test rows of each split: a method the ensemble of its
            runs; None where it failed.
        comparison: The statistics of these.
        verdict: What they mean, in words.
        details: Other metrics, times and epochs of every row, which decide nothing.
        steps: How the error came down, from a single net to the blend; None if that is not known.
        facts: What is known of the data; None if nothing is.
        diagnosis: What rows that it has not learned say of the model in the folder; None without.
        folder: Where it is kept; None if nowhere.
        data: The table it is about, if it is at hand.
        notes: What else a reader should know.
        planned: How the study of a network was planned, and what was left out, in sentences.
    """

    config: StudyConfig
    records: Sequence[RunRecord] = field(repr=False)
    chosen: Mapping[str, Sequence[RunRecord]] = field(repr=False)
    best: Mapping[str, Run] = field(repr=False)
    trials: int
    scores: Mapping[str, Sequence[Scores | None]] = field(repr=False)
    comparison: Comparison = field(repr=False)
    verdict: Verdict
    details: Mapping[str, Details] = field(default_factory=dict, repr=False)
    steps: Steps | None = field(default=None, repr=False)
    facts: Facts | None = field(default=None, repr=False)
    diagnosis: Diagnosis | None = field(default=None, repr=False)
    folder: Path | None = None
    data: Data | None = field(default=None, repr=False)
    notes: Sequence[str] = ()
    planned: Sequence[str] = ()

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Read a study from its folder, as far as it has come.

        Args:
            folder: Its own, ``study.folder``; or that of its table, such as ``runs/houses``, for
                the newest one.
        """
        folder = find_study(folder)
        store = Store.open(folder)
        config = _read_config(folder, store.configuration)
        records, targets = list(store.records().values()), read_targets(folder)
        if targets is None and any(record.predictions for record in records):
            raise StoreError(
                f"The study in {folder} lacks {TARGETS}, which its ensembles are judged by. Run "
                "the command that started it again, which writes it anew."
            )
        study = cls.read(config, records, targets=targets, facts=read_facts(folder))
        kept = read_study(folder).about.get("budget")
        planned = Budget.from_dict(kept).notes if isinstance(kept, dict) else ()
        return replace(study, folder=folder, diagnosis=read_diagnosis(folder), planned=planned)

    @classmethod
    def read(
        cls,
        config: StudyConfig,
        records: Sequence[RunRecord],
        *,
        targets: Sequence[Targets] | None = None,
        facts: Facts | None = None,
    ) -> Self:
        """Make the study of some finished runs.

        Ensembles need the targets of every split; without them, and where runs have not kept their
        predictions, single runs are compared.
        """
        whole, fewer = config, finished_splits(config, records)
        if fewer is not None:
            config = replace(config, splits=fewer)
            records = [own for own in records if own.run.split < fewer]
            targets = None if targets is None else targets[:fewer]
        selection = select(config, records)
        rows = judge(config, selection, targets)
        comparison = compare_rows(config, rows.scores, config.metric)
        beside = compare_beside(config, rows.scores)
        return cls(
            config=whole,
            records=records,
            chosen=selection.chosen,
            best=selection.best,
            trials=selection.trials,
            scores=rows.scores,
            comparison=comparison,
            verdict=make_verdict(
                comparison, leaks=() if facts is None else facts.leaks, beside=beside
            ),
            details=describe_rows(
                rows.scores,
                rows.used,
                metric=config.metric,
                # A row of a regressor is a single run anyway.
                chosen={
                    name: selection.chosen[name]
                    for name in config.methods
                    if config.kind != "estimator"
                },
                tried=selection.tried,
                target_names=config.target_names if config.targets > 1 else (),
            ),
            steps=rows.steps,
            facts=facts,
        )

    @property
    def is_complete(self) -> bool:
        """Whether all settings that were asked for were compared, on all splits."""
        is_whole = self.comparison.n_splits == self.config.splits
        return is_whole and self.trials == self.config.trials

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """What should make a reader careful; each is explained in the docs."""
        return find_checks(
            self.comparison,
            self.verdict,
            records=self.records,
            chosen={name: [record.run for record in own] for name, own in self.chosen.items()},
            facts=self.facts,
            space=NETWORK_SPACE if self.config.epochs else SPACE,
        )

    def __str__(self) -> str:
        """Return it in a dozen lines: the best rows, the verdict, the codes of the checks."""
        names = [self.config.reference, self.verdict.recommended, self.verdict.use]
        shown = best_rows(leaderboard(self.comparison), self.comparison, names)
        left = len(self.comparison.rows) - len(shown.rows)
        codes = ", ".join(check.code for check in self.checks)
        lines = [
            self._headline(),
            str(shown),
            f"{count(left, 'more row')}: study.to_frame()" if left else "",
            fill(self.verdict.text, WIDTH),
            f"Checks: {codes}; see study.checks" if codes else "",
        ]
        return "\n".join(filter(None, lines))

    def _repr_html_(self) -> str:
        """Return it for a notebook: the verdict, the leaderboard, the checks."""
        checks = "\n".join(str(check) for check in self.checks)
        return as_html(self._headline(), self.verdict.text, leaderboard(self.comparison), checks)

    def _headline(self) -> str:
        config, splits = self.config, count(self.comparison.n_splits, self.comparison.case)
        tried = f"{count(self.trials, 'setting')} of each of {count(len(config.methods), 'method')}"
        rows = f"{count(config.rows, 'row')}, {count(config.columns, 'input')}; "
        return f"{config.problem}: {rows if config.rows else ''}{tried} on {splits}."

    def to_frame(self) -> "pd.DataFrame":
        """Return the leaderboard as a pandas frame, a line for every method and baseline.

        The other metrics have columns of their own, and so have the times, the epochs, what the
        single nets are worth and, of several targets, each in its own units (``rmse_price``).
        """
        return leaderboard_frame(self.comparison, self.details)

    def to_dict(self) -> dict[str, JSON]:
        """Return what was found as plain values, for a JSON file."""
        statistics = self.comparison.to_dict()
        return {
            "configuration": self.config.to_dict(),
            "trials": self.trials,
            "verdict": self.verdict.text,
            "recommended": self.verdict.recommended,
            "use": self.verdict.use,
            "checks": [check.to_dict() for check in self.checks],
            "rows": statistics["rows"],
            "pairs": statistics["pairs"],
            "smallest_change": statistics["smallest_change"],
            "details": {name: own.to_dict() for name, own in self.details.items()},
            "steps": None if self.steps is None else self.steps.to_dict(),
            "best": {name: run.to_dict() for name, run in self.best.items()},
            "diagnosis": None if self.diagnosis is None else self.diagnosis.summary(),
        }

    def runs_frame(self) -> "pd.DataFrame":
        """Return a line for every finished run: what it was, and how good it came out."""
        return runs_frame(self.records, self.chosen, self.config.metric)

    def report(self, path: str | Path, *, force: bool = False) -> Path:
        """Write a page about the study: one HTML file that needs no network.

        Args:
            path: The HTML file; its folder is made. A report that regaug has written there is
                replaced.
            force: Replace any other file too.
        """
        write = import_module("regaug.report").write_report  # which knows studies
        written: Path = write(self, Path(path), force=force)
        return written

    def model(
        self,
        data: Data | None = None,
        *,
        method: str | None = None,
        members: int = 8,
        seed: int = 0,
        quick: bool = False,
        jobs: int = 1,
        max_minutes: float | None = None,
        stop: str | Path | None = None,
        progress: bool | FitObserver | None = None,
    ) -> Ensemble:
        """Fit the model that the study advises: the one of ``regaug fit --from``.

        A method that is named is trained with the recipe and the settings that were the best of the
        study (:meth:`settings_of`); a blend chooses its own, fold by fold.

        Args:
            data: The table to fit it to; the one that was compared if it is at hand.
            method: Another row than the one to use.
            members: Nets in an ensemble that is fitted with a single method.
            seed: Decides everything about it.
            quick: Try less, as for the model that a study leaves in its folder, which is read
                where that is the one that is asked for.
            jobs: Worker processes of a blend.
            max_minutes: Begin nothing new after so many minutes, and use what is finished.
            stop: A file: the same as soon as there is one.
            progress: True for a progress bar, or a function that is told how far it has come.
        """
        if quick and (data, method, seed) == (None, None, self.config.seed) and self._has_model:
            return Ensemble.load(self._model_folder)
        if self.config.kind == "estimator":
            raise ArgumentError(
                "`study` must be one of nets to fit a model, got one of a regressor. Fit that one "
                "yourself, with the rows that the study advises: the report has the lines."
            )
        table = self._check_table(data)
        name = self.advised if method is None else method
        options: dict[str, Any] = {}
        if name in self.best:
            # Another table than the one that was compared may have targets without a logarithm.
            log = self.best[name].log and bool((table.y > 0).all())
            options = {"settings": self.settings_of(name), "log": log, "members": members}
        return fit(
            table,
            method=name,
            hidden=self.config.hidden or HIDDEN,
            seed=seed,
            quick=quick,
            jobs=jobs,
            max_minutes=max_minutes,
            stop=stop,
            progress=progress,
            **options,
        )

    @property
    def advised(self) -> str:
        """What :func:`regaug.fit` is to be told: the row to use if it can be fitted to a table.

        Of a regressor it is whose rows it is to be given.
        """
        if self.config.kind == "estimator":
            return self.verdict.recommended
        use = self.verdict.use
        return use if use in BLENDS else self.verdict.recommended

    @property
    def looked_at(self) -> tuple[str, ...]:
        """The methods that are looked at closely: plain training, and the best augmentation.

        That is the recommended one, or the one with the best mean if none is; its nets and those of
        plain training are what the folder of a network's study keeps.
        """
        plain, best = self.comparison.reference, self.verdict.recommended
        if best == plain:
            nets = (row for row in self.comparison.rows if row.is_net and row.mean is not None)
            best = next((row.name for row in nets if row.name != plain), plain)
        return (plain,) if best == plain else (plain, best)

    def weights(self, method: str | None = None, split: int = 0) -> Path | None:
        """Return the safetensors file with the weights of a chosen net, of a network's own study.

        It is the net with the best validation error of a method on a split. None if its weights are
        not kept: those of :attr:`looked_at` are, and only in a folder.

        Args:
            method: One of the study; the recommended one if None.
            split: Number of the split.
        """
        name = self.verdict.recommended if method is None else method
        chosen = lookup("method of the study", name, self.chosen)
        check_integer("split", split, 0, len(chosen) - 1)
        if self.folder is None:
            return None
        file = net_file(self.folder, chosen[split].run)
        return file if file.is_file() else None

    def settings_of(self, method: str) -> Settings:
        """Return the recipe and the settings of a method that are the best over all splits."""
        own = lookup("method of the study", method, self.best).settings or Settings()
        # Whether others were ahead matters among the runs of a split alone.
        return replace(own, seed=0, halve=False)

    @property
    def _model_folder(self) -> Path:
        return (self.folder or Path()) / MODEL

    @property
    def _has_model(self) -> bool:
        return self.folder is not None and self._model_folder.is_dir()

    def _check_table(self, data: Data | None) -> Data:
        table = self.data if data is None else data
        if self.config.kind in ("network", "lightning"):
            raise ArgumentError(
                "A model is fitted to a table, and this study is of another network. Its best nets "
                "are kept (study.weights), and the report says how to load them."
            )
        if table is None:
            raise ArgumentError(
                "`data` must be the table to fit a model to, got None: the study was read from a "
                "folder, or made from splits. Give it: study.model(data)."
            )
        names, wanted = getattr(table, "targets", None), self.config.target_names
        if names is not None and tuple(names) != wanted:
            raise ArgumentError(
                f"`data` must have the targets of the study, {', '.join(wanted)}, got "
                f"{', '.join(names)}."
            )
        return table
