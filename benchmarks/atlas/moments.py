"""How far are new rows from those of a table, and what is a model worth that sees them alone?

    python -m benchmarks.atlas.moments       writes results/atlas/moments.md

On each table as many new rows as there are to learn from are made of these. Their moments are
compared with those of the rows themselves, and ridge and scikit-learn's boosting are fitted on the
new rows alone and tested on held-out rows of the table, against the same fitted on the real rows.
"""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.atlas.page import table
from benchmarks.atlas.protocol import Cell, publish, rmse, rows
from regaug.data import read_table
from regaug.data.tabular.encoding import Encoder
from regaug.data.tabular.generation import generate
from regaug.data.tabular.moments import Moments
from regaug.formatting import change, number, percent

# With and without categories, from 158 to 5,000 rows.
TABLES = [
    "abalone_rings",
    "auto_price",
    "bodyfat_siri",
    "car_price_gm",
    "cpu_tdp",
    "diamond_price",
    "fish_weight",
    "food_calories",
    "hitters_salary",
    "injury_loss",
    "life_expectancy",
    "sacramento_homes",
]
WHOLE = {"categories": "whole"}
MADE = {
    "mixup": ("mixup", {}),
    "mixup, categories whole": ("mixup", WHOLE),
    "epbeta-mixup": ("epbeta-mixup", {}),
    "epbeta-mixup, categories whole": ("epbeta-mixup", WHOLE),
    "c-mixup": ("c-mixup", {}),
    "feature-mix": ("feature-mix", {}),
    "foma-rho": ("foma-rho", {}),
    "cems": ("cems", {}),
}
# Most rows that are made and learned from.
MOST = 1000


def look(cell: Cell) -> dict[str, list[float]]:
    """Return what is found of the rows of every method on a split of a table."""
    whole, learn, test = rows(cell)
    columns = [*whole.inputs, *whole.targets]
    few = np.sort(np.random.default_rng(cell.split).permutation(learn)[:MOST])
    known = whole.frame.iloc[few][columns].reset_index(drop=True)
    held, target = whole.frame.iloc[test][columns], whole.targets[0]
    own = read_table(known, target=target)
    encoder = Encoder.fit(known[list(own.inputs)])

    def errors(frame) -> list[float]:
        found = []
        for model in (
            make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 3, 6))),
            HistGradientBoostingRegressor(max_iter=80, random_state=0),
        ):
            model.fit(encoder.transform(frame), frame[target].astype(float))
            found.append(rmse(model.predict(encoder.transform(held)), held[target].to_numpy(float)))
        return found

    base, found = errors(known), {}
    for name, (method, settings) in MADE.items():
        seed = cell.split
        new = generate(own, method=method, rows=len(known), seed=seed, method_settings=settings)
        told = Moments.of(own, new)
        worse = np.log(errors(new)) - np.log(base)
        found[name] = [told.mean, told.spread, told.correlation, told.range, *worse]
    return found


def main() -> None:
    looked = [look(Cell(name, split)) for name in TABLES for split in (0, 1)]
    body = []
    for name in MADE:
        mean, spread, correlation, span, ridge, boosting = np.mean([own[name] for own in looked], 0)
        worse = [change(100 * np.expm1(value), "percent") for value in (ridge, boosting)]
        moments = [number(mean, 2), change(100 * spread, "percent"), number(correlation, 2)]
        body.append([name, *moments, percent(span), *worse])
    head = ["rows of", "means, in deviations", "standard deviations", "correlations", "ranges"]
    text = "Averages over two splits of each table; errors are geometric means."
    publish(
        "moments",
        [
            "# New rows beside the table's own",
            "",
            f"`python -m benchmarks.atlas.moments`. {text}",
            "Errors are those of models that see the new rows alone, against the real rows.",
            "",
            *table([*head, "ridge", "boosting"], body),
            f"Tables: {', '.join(TABLES)}.",
        ],
    )


if __name__ == "__main__":
    main()
