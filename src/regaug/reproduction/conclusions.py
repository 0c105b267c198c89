"""What the measured data sets have shown, in sentences: each of them, and all together."""

import math
from collections.abc import Iterator, Mapping, Sequence

from regaug import formatting
from regaug.metrics import METRICS
from regaug.reproduction.answers import Best, Rows, best_cell, best_foma, say_tuned
from regaug.reproduction.cuts import Cut
from regaug.reproduction.measured import Figure, Measured, Tuned
from regaug.reproduction.recipes import metric_of
from regaug.reproduction.tables import FOMA, RELEASED
from regaug.studies.statistics import Row
from regaug.training.baselines import BASELINES

# A mean this many times worse is another result, whatever the noise.
MUCH = 1.5
# What was counted in an epoch of batches without a training, by data set and row.
Counted = Mapping[str, Mapping[str, Cut]]


def summarize(found: Measured) -> Iterator[str]:
    """Give what a data set has shown, in sentences."""
    first = {line.label: line.figures[0] for line in found.paper if line.figures}
    cut = [line for line in found.paper if line.is_cut and line.label in (*FOMA, "erm")]
    if cut:
        said = ", ".join(f"{line.label} {line.epochs} of {line.of_epochs}" for line in cut)
        yield f"Cut short ({said} epochs): no test of the published figures."
    elif not found.paper:
        pass  # a study alone
    elif found.note:
        yield "The data differs from the paper's, so the errors do not compare; their order may."
    else:
        yield from _against_published(first)
    if "erm" in first and not cut:
        yield from _against_plain(first)
    yield from _trained_alike(first)
    yield from _with_scaled_targets(found)
    yield from _baselines_win(first)
    if found.tuned is not None:
        yield from _about_tuned(found.tuned)


def _against_published(first: Mapping[str, Figure]) -> Iterator[str]:
    known = {name: own.apart for name, own in first.items() if own.apart is not None}
    near = [name for name, apart in known.items() if abs(apart) <= 2]
    far = {name: first[name] for name, apart in known.items() if abs(apart) > 2}
    if near:
        yield f"Within two standard errors of the published figure: {', '.join(near)}."
    if far:
        both = [f"{n} ({own.score}, published {own.published_mean:.4g})" for n, own in far.items()]
        yield f"Further apart: {', '.join(both)}."
    # Where the training itself, and not the method, explains a large error.
    for name in far:
        plain = first.get(f"erm, trained as {name}")
        if plain is not None and "erm" in first and _is_much_worse(plain, first["erm"]):
            yield (
                f"Plain training with the published rate, batches and epochs of {name} has "
                f"{plain.score} itself: they are too few steps for this data, with or without the "
                "method."
            )


def _is_much_worse(one: Figure, other: Figure) -> bool:
    if METRICS[one.metric].higher_is_better:
        return MUCH * one.mean < other.mean
    return one.mean > MUCH * other.mean


def _against_plain(first: Mapping[str, Figure]) -> Iterator[str]:
    plain = first["erm"]
    known = [(name, first[name].score.against(plain.score)) for name in FOMA if name in first]
    if known:
        words = " and ".join(f"{name} is {change} than plain training" for name, change in known)
        yield f"In the paper's protocol, by {METRICS[plain.metric].title}, {words} here."


def _trained_alike(first: Mapping[str, Figure]) -> Iterator[str]:
    """Tell what the method does from what its rate, batches and epochs do."""
    words = [
        f"of {name}: {name} {first[name].score}, plain training {first[plain].score}"
        for name in (*FOMA, RELEASED)
        if name in first and (plain := f"erm, trained as {name}") in first
    ]
    if words:
        yield f"Trained alike, with the rate, batches and epochs {'; '.join(words)}."


def _with_scaled_targets(found: Measured) -> Iterator[str]:
    rows = Rows(found)
    if rows.scaled_erm is not None and rows.scaled_foma is not None:
        yield (
            f"With scaled targets the best plain training has {rows.scaled_erm.figure.score}, the "
            f"best FOMA {rows.scaled_foma.figure.score} ({rows.scaled_foma.line.label})."
        )


def _baselines_win(first: Mapping[str, Figure]) -> Iterator[str]:
    if "erm" not in first:
        return
    plain = first["erm"].score
    better = [
        f"{name} ({first[name].score})"
        for name in BASELINES
        if name in first and first[name].score.is_better_than(plain)
    ]
    if better:
        yield f"Plain training ({plain}) is beaten by {', '.join(better)}, without a net."


def _about_tuned(tuned: Tuned) -> Iterator[str]:
    yield f"Tuned: {tuned.verdict}"
    best = best_foma(tuned)
    if best is None:
        return
    comparison = tuned.comparison
    row, metric, unit = comparison.row(best), METRICS[comparison.metric], comparison.unit
    interval = formatting.between(row.change_low, row.change_high, unit)
    level = formatting.percent(comparison.level)
    yield (
        f"The better FOMA is {best}: {metric.title} {formatting.change(row.change, unit)} "
        "against tuned plain training"
        + (f", {level} interval {interval}" if interval else "")
        + f", with {say_settings(tuned.best[best].method_settings)}."
    )


def say_settings(own: Mapping[str, object]) -> str:
    """Say in words what a setting of FOMA does."""
    cut = f"rho {own['rho']}" if own.get("rho") is not None else f"k {own.get('k')}"
    fade = own["anneal"]
    until = (
        "throughout" if fade is None else f"faded out over {formatting.percent(float(str(fade)))}"
    )
    return (
        f"{own['sampler']} batches at the {own['place']}, {cut}, a batch touched with probability "
        f"{own['p']:.2g} {until}"
    )


def say_answer(tables: Sequence[Measured], counted: Counted | None = None) -> str:
    """Answer the question over all data sets, in a sentence and the points it stands on."""
    whole = [found for found in tables if not found.note and _is_whole(found)]
    met = [found.data for found in whole if _is_met(found, "erm")]
    own = [found.data for found in whole if any(_is_met(found, name) for name in FOMA)]
    tuned = {found.data: found.tuned for found in tables if found.tuned is not None}
    gains = [data for data, one in tuned.items() if _is_told(one, better=True)]
    harms = [data for data, one in tuned.items() if _is_told(one, better=False)]
    better = [found.data for found in whole if _is_better(Rows(found).foma, Rows(found).erm)]
    scaled = [
        found.data for found in whole if _is_better(Rows(found).scaled_foma, Rows(found).scaled_erm)
    ]
    lead = "**A gain of FOMA over plain training could not be shown.**"
    if better or scaled or gains:
        lead = f"**A gain of FOMA is seen on {_listed(sorted({*better, *scaled, *gains}))}.**"
    points = (
        f"*The published figures.* Of {formatting.count(len(whole), 'data set')} that are the "
        "paper's own and trained to the end here, plain training comes within two standard errors "
        f"of its published figure on {_listed(met)}, FOMA or FOMA_rho of theirs on {_listed(own)}.",
        "*The papers' settings.* The best of FOMA's rows is better than plain training, by more "
        f"than two standard errors, on {_listed(better)} of these; with scaled targets on "
        f"{_listed(scaled)}.",
        _say_idle(tables, counted or {}),
        "*The same search for every method.* FOMA or FOMA_rho is better than plain training, "
        f"beyond chance, on {_listed(gains)} and worse on {_listed(harms)} of "
        f"{formatting.count(len(tuned), 'data set')}. {_say_reached(tables)}",
    )
    return "\n".join([f"{lead}\n", *(f"- {point}" for point in points if point)])


def _say_idle(tables: Sequence[Measured], counted: Counted) -> str:
    """Name the printed settings that change no batch."""
    words = []
    for name, title in zip(FOMA, ("FOMA by table 8", "FOMA_rho by table 9"), strict=True):
        cuts = {found.data: find_cut(found, name, counted) for found in tables}
        idle = [data for data, cut in cuts.items() if cut is not None and not cut.changed]
        words += [f"{title} on {', '.join(idle)}"] if idle else []
    if not words:
        return ""
    return (
        f"*Settings that change nothing.* Not a single batch is changed by {' and by '.join(words)}"
        ": that is plain training under another name."
    )


def find_cut(found: Measured, label: str, counted: Counted) -> Cut | None:
    """Return what a row changes, counted in its training or else in an epoch of its batches."""
    line = next((own for own in found.paper if own.label == label), None)
    return None if line is None else line.cut or counted.get(found.data, {}).get(label)


def _say_reached(tables: Sequence[Measured]) -> str:
    """Say where tuned plain training reaches FOMA's published figure; splits must be like its."""
    reached = []
    for found in tables:
        best = best_cell(found)
        if found.tuned is None or found.note or found.experiment != "in-distribution" or not best:
            continue
        error, mean = METRICS[metric_of(found.data)].error, found.tuned.comparison.row("erm").mean
        if mean is not None and error(mean) <= error(best.mean):
            reached.append(f"{found.data}, {formatting.number(mean)} for {best.mean:g}")
    if not reached:
        return "Tuned plain training does not reach FOMA's published figure."
    return (
        "Tuned plain training alone reaches the better published figure of FOMA, on splits that "
        f"are made alike, on {len(reached)} ({'; '.join(reached)})."
    )


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)} ({', '.join(names)})" if names else "none"


def _is_better(one: Best | None, other: Best | None) -> bool:
    """Tell whether one is better by more than two standard errors of the difference."""
    if one is None or other is None or not one.figure.score.is_better_than(other.figure.score):
        return False
    squares = [(own.figure.sd or 0.0) ** 2 / own.figure.n for own in (one, other)]
    return abs(one.figure.mean - other.figure.mean) > 2 * math.sqrt(sum(squares))


def say_briefly(found: Measured) -> str:
    """Say in one sentence what a data set has shown."""
    lines = {line.label: line for line in found.paper if line.figures}
    known = [lines[name] for name in ("erm", *FOMA, RELEASED) if name in lines]
    words = [f"{line.words} {_beside(line.figures[0], found)}" for line in known]
    rows = Rows(found)
    if rows.scaled_erm is not None and rows.scaled_foma is not None:
        words.append(
            f"with scaled targets plain training {rows.scaled_erm.say(name=False)} and FOMA "
            f"{rows.scaled_foma.say(name=False)}"
        )
    if found.tuned is not None:
        change = say_tuned(found.tuned)[1]
        words.append(f"tuned, FOMA {change}: {_say_told(found.tuned)}")
    return "; ".join(words) + "."


def _say_told(tuned: Tuned) -> str:
    best = best_foma(tuned)
    row = None if best is None else tuned.comparison.row(best)
    if row is None or not row.is_significant:
        return "not told from plain training"
    is_better = _is_gain(row, tuned)
    return f"{'better' if is_better else 'worse'} than plain training, beyond chance"


def _beside(figure: Figure, found: Measured) -> str:
    mean = formatting.short(figure.mean)
    if figure.published_mean is None or found.note:
        return mean
    return f"{mean} (published {figure.published_mean:g})"


def _is_whole(found: Measured) -> bool:
    lines = [line for line in found.paper if line.label in (*FOMA, "erm")]
    return bool(lines) and not any(line.is_cut or line.done < line.planned for line in lines)


def _is_met(found: Measured, label: str) -> bool:
    for line in found.paper:
        if line.label == label and line.figures:
            apart = line.figures[0].apart
            return apart is not None and abs(apart) <= 2
    return False


def _is_told(tuned: Tuned, *, better: bool) -> bool:
    """Tell whether one of the two FOMA is better, or worse, than plain training beyond chance."""
    told = [row for row in tuned.comparison.rows if row.name in FOMA and row.is_significant]
    return any(_is_gain(row, tuned) == better for row in told)


def _is_gain(row: Row, tuned: Tuned) -> bool:
    return METRICS[tuned.comparison.metric].error(row.change) < 0
