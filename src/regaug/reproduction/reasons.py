"""Why the published gains do not appear, and when FOMA helps: what the runs show of it."""

from collections.abc import Iterator, Mapping, Sequence

from regaug import formatting
from regaug.formatting import TextTable
from regaug.metrics import METRICS
from regaug.reproduction import published
from regaug.reproduction.answers import best_foma, name_metric
from regaug.reproduction.conclusions import Counted, find_cut, say_settings
from regaug.reproduction.measured import Figure, Line, Measured
from regaug.reproduction.problems import SCALINGS
from regaug.reproduction.recipes import metric_of
from regaug.reproduction.tables import FOMA, RELEASED

LIKELY = """\
**What is likely, and not shown:** the published rows of FOMA come from runs with scaled targets, or
from longer training with other settings, and were set beside figures of plain training that are
quoted from C-Mixup, at raw targets, batches of 16 and 100 epochs. For it: the released code of
CEMS, by the same authors, min-max scales the targets of every data set; on Airfoil means near the
published ones of FOMA have scaled targets, of plain training too; and with raw targets the printed
setting of FOMA_rho changes nothing there. Against it: FOMA's released code scales no targets, in
any commit; and with scaled targets the printed settings of FOMA are worse than plain training in
the same setting, so that the scale alone does not lead from the printed settings to the printed
figures. What is shown is only that released settings, printed settings and printed figures do not
belong together."""
HELPS = """\
FOMA pulls a batch toward a plane: it takes out what is left of a batch beside its leading
directions. That helps where these are noise, and does harm where they are what the target depends
on.

- On sixty noisy samples of a *linear* manifold FOMA beats tuned plain training, and ridge
  regression beats both (`tests/studies/test_answers.py`).
- On the real tables of [the field](field.md) neither FOMA nor FOMA_rho is told from plain training,
  over all tables and in no half of them by any of six traits; [the atlas](atlas.md) says what the
  tables are and how they are measured.
- Where training goes on after its best epoch, FOMA keeps the error on new rows from rising as far:
  on NO2 with the recipe of a study, and with five versions of it (figure 2 below). The best epoch,
  which validation rows find, is no better for it.
- On a curved, nearly noise-free target a constant strength costs: on Airfoil with scaled targets,
  in the table above, every row of FOMA is worse than plain training with its rate, batches and
  epochs."""


def explain(tables: Sequence[Measured], counted: Counted | None = None) -> Iterator[str]:
    """Give the paragraphs and tables on why the published gains do not appear."""
    counted = counted or {}
    yield (
        '### Settings that change nothing\n\nWith `scale="leading"` (the paper\'s "large") FOMA '
        "scales the first k singular values of a batch, those that make up at most the share rho. "
        "Where the first value alone holds more than that, k is 0 and the batch stays as it is. "
        'With `scale="trailing"` ("small") it scales those beyond the first k: where the '
        "intrinsic dimension of the data is at least the number of rows in a batch, there are "
        "none. "
        "On the real batches of Airfoil and Exchange-Rate table 9's setting has k = 0 in every "
        "one, close or random (`tests/reproduction/test_cuts.py`). Counted in every training; "
        "where none has been counted yet, in an epoch of its batches, of FOMA on the inputs "
        "(`python -m benchmarks.cuts`):\n"
    )
    yield make_cuts_table(tables, counted).to_markdown()
    yield from _about_idle(tables, counted)
    for found in tables:
        scaled = make_scaled_table(found)
        if scaled is not None:
            yield f"### The scale of the targets: {found.data}\n"
            yield (
                f"{name_metric(found.data)}, mean of three seeds ± standard deviation; everything "
                "but the scale is the paper's protocol. Predictions are scaled back. The columns "
                "of scaled targets are ours.\n"
            )
            yield scaled.to_markdown()
            yield from _near_published(found)
    yield LIKELY + "\n"
    yield "### Settings that train too little, or more than what they are compared with\n"
    yield _training_table(tables).to_markdown()
    yield from _about_ada(tables)
    yield "### Batches of close samples\n"
    yield from _about_batches(tables)


def _label(found: Measured, label: str) -> Line | None:
    return next((line for line in found.paper if line.label == label and line.figures), None)


def _mean(line: Line | None) -> str:
    if line is None:
        return ""
    own = line.figures[0]
    spread = "" if own.sd is None else f" ± {formatting.short(own.sd, 2)}"
    cut = f" ({', '.join(line.lacks)})" if line.lacks else ""
    return f"{formatting.short(own.mean)}{spread}{cut}"


def make_cuts_table(tables: Sequence[Measured], counted: Counted) -> TextTable:
    """Return what every row of FOMA changes, and where that was counted."""
    rows = []
    for found in tables:
        for line in found.paper:
            cut = find_cut(found, line.label, counted)
            if cut is None:
                continue
            where = "training" if line.cut else "an epoch of its batches"
            share = formatting.percent(cut.share)
            rows.append((found.data, line.label, share, f"{cut.k}", f"{cut.values}", where))
    header = ("data", "row", "batches changed", "median k", "of so many values", "counted in")
    return TextTable("What FOMA changes", header, rows)


def _about_idle(tables: Sequence[Measured], counted: Counted) -> Iterator[str]:
    for found in tables:
        for name, title in (("foma", "FOMA by table 8"), ("foma-rho", "FOMA_rho by table 9")):
            line = _label(found, name)
            if line is None:
                continue
            cut = find_cut(found, name, counted)
            if cut is None or cut.changed:
                continue
            words = f"- On {found.data} {title} changes none of {cut.batches:,} batches"
            words += "" if line.cut else " of an epoch"
            twin = _label(found, f"erm, trained as {name}, nearest batches")
            if twin is not None:
                words += (
                    f": it has {line.figures[0].score}, and plain training on the same batches "
                    f"{twin.figures[0].score}"
                )
                if formatting.short(line.figures[0].mean) != formatting.short(twin.figures[0].mean):
                    words += (
                        ". By construction they are the same training, and after an epoch they "
                        "agree to a millionth (`tests/reproduction/test_cuts.py`); what is "
                        "between the two figures is likely rounding that has grown since"
                    )
            yield f"{words}.\n"


def make_scaled_table(found: Measured) -> TextTable | None:
    """Return the rows of a data set with raw and with scaled targets beside each other."""
    rows = []
    for line in found.paper:
        scaled = [_label(found, f"{line.label}; targets {scaling}") for scaling in SCALINGS]
        if any(scaled):
            rows.append((line.label, _mean(line), *map(_mean, scaled)))
    header = ("row", "raw targets", *(f"targets {scaling}" for scaling in SCALINGS))
    return TextTable(f"{found.data}, targets scaled", header, rows) if rows else None


def _near_published(found: Measured) -> Iterator[str]:
    """Say which of the rows of nets each published figure of FOMA is nearest to."""
    nets = [line for line in found.paper if line.figures and line.epochs is not None]
    known = [(line.label, line.figures[0]) for line in nets]
    words = []
    for method in FOMA:
        cell = published.cell(found.data, method, metric_of(found.data))
        if cell is not None:
            label, own = min(known, key=lambda pair: abs(pair[1].mean - cell.mean))
            words.append(
                f"{cell.mean:g} of {method} is nearest to {formatting.short(own.mean)} of `{label}`"
            )
    if words:
        yield f"Of the published figures, {', and '.join(words)}.\n"


def _training_table(tables: Sequence[Measured]) -> TextTable:
    rows = []
    for found in tables:
        for name in (*FOMA, RELEASED, "ada"):
            own, plain = _label(found, name), _label(found, f"erm, trained as {name}")
            if own is not None and plain is not None:
                erm = _label(found, "erm")
                rows.append((found.data, name, _mean(own), _mean(plain), _mean(erm)))
    header = (
        "data",
        "settings of",
        "itself",
        "plain training with them",
        "plain training, quoted settings",
    )
    return TextTable("Trained alike", header, rows)


def _about_ada(tables: Sequence[Measured]) -> Iterator[str]:
    for found in tables:
        if found.data != "airfoil":
            continue
        lines = [_label(found, label) for label in ("ada", "erm, trained as ada", "erm")]
        cell = published.cell(found.data, "ada", metric_of(found.data))
        if cell is None or None in lines:
            continue
        ada, alike, erm = (line.figures[0] for line in lines if line is not None)
        yield (
            f"- On {found.data} ADA with its own settings has {formatting.short(ada.mean)} "
            f"(published {cell.mean:g}{_apart(ada)}). They have {lines[0].epochs} epochs, those of "  # type: ignore[union-attr]
            f"the quoted plain training {lines[2].epochs}: plain training has "  # type: ignore[union-attr]
            f"{formatting.short(alike.mean)} with ADA's and {formatting.short(erm.mean)} with the "
            "quoted ones.\n"
        )


def _apart(figure: Figure) -> str:
    return "" if figure.apart is None else f", {figure.apart:+.1f} standard errors apart"


def _about_batches(tables: Sequence[Measured]) -> Iterator[str]:
    rows = []
    for found in tables:
        for name in (*FOMA, RELEASED):
            plain = _label(found, f"erm, trained as {name}")
            for sampler in ("nearest", "weighted"):
                close = _label(found, f"erm, trained as {name}, {sampler} batches")
                if plain is not None and close is not None:
                    change = close.figures[0].score.against(plain.figures[0].score)
                    row = (found.data, name, _mean(plain), f"{_mean(close)} ({sampler})", change)
                    rows.append(row)
    header = (
        "data",
        "settings of",
        "plain, random batches",
        "plain, its batches",
        "the batches are",
    )
    yield (
        "Plain training with the rate, size and epochs of FOMA's settings, on random batches and "
        "on its batches of samples with close targets: what these alone do.\n"
    )
    yield TextTable("Batches", header, rows).to_markdown()


def tell_cases(tables: Sequence[Measured]) -> Iterator[str]:
    """Say where a tuned FOMA was better than tuned plain training, and by which setting."""
    yield HELPS + "\n"
    for found in tables:
        if found.tuned is None or (best := best_foma(found.tuned)) is None:
            continue
        comparison = found.tuned.comparison
        row, metric = comparison.row(best), METRICS[comparison.metric]
        interval = formatting.between(row.change_low, row.change_high, comparison.unit)
        own: Mapping[str, object] = found.tuned.best[best].method_settings
        is_told = "told from" if row.is_significant else "not told from"
        yield (
            f"- {found.data}, tuned: {best} {metric.title} "
            f"{formatting.change(row.change, comparison.unit)}"
            + (f" ({interval})" if interval else "")
            + f", {is_told} plain training; {say_settings(own)}."
        )
    yield ""
