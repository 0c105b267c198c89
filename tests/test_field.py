"""The arithmetic of the page of the field, on made-up studies."""

import math

import numpy as np
import pytest
from benchmarks.atlas.field_page import make_page
from benchmarks.atlas.halves import halves, map_part
from benchmarks.atlas.pooling import change, changes, interval, p_value, pool
from benchmarks.atlas.protocol import unexplained
from scipy import stats

MINUS = "\N{MINUS SIGN}"
METHODS = ("mixup", "foma", "ada")


def line(table, factors, **more):
    """Return the study of a table: plain errors, and those of methods as multiples of them."""
    plain = [1.0, 2.0, 4.0]
    errors = {name: [factor * error for error in plain] for name, factor in factors.items()}
    return {"table": table, "errors": {"erm": plain, **errors}, "helps": [], "hurts": [], **more}


def field(n=12, seed=0, **factors):
    """Return studies of n tables, with factors that vary by one per cent."""
    rng = np.random.default_rng(seed)
    return [
        line(
            f"t{number}",
            {name: factor * np.exp(0.01 * rng.normal()) for name, factor in factors.items()},
            rows=100 * (number + 1),
            columns=5,
            categories=0.0,
            skew=(-1) ** number * float(number),
            dimension=None if number == 3 else 2.0 + number,
            unexplained=0.1,
        )
        for number in range(n)
    ]


def test_a_change_is_the_mean_of_log_ratios():
    assert change([2.0, 1.0], [1.0, 2.0]) == pytest.approx(0.0)
    assert change([2.0, 2.0], [1.0, 1.0]) == pytest.approx(math.log(2.0))


def test_interval_and_p_value_are_those_of_student():
    values = [0.01, -0.03, 0.02, -0.05, -0.01]
    known = stats.ttest_1samp(values, 0.0)
    assert p_value(values) == pytest.approx(known.pvalue)
    low, middle, high = interval(values)
    ends = known.confidence_interval(0.95)
    assert (low, high) == pytest.approx(tuple(100 * math.expm1(end) for end in ends))
    assert middle == pytest.approx(100 * math.expm1(np.mean(values)))


@pytest.mark.parametrize(("values", "p"), [([0.0, 0.0, 0.0], 1.0), ([-0.1, -0.1, -0.1], 0.0)])
def test_tables_that_do_not_vary_have_a_p_value(values, p):
    assert p_value(values) == pytest.approx(p)


def test_a_table_where_a_method_failed_or_was_not_tried_does_not_count():
    lines = [line("a", {"mixup": 0.5}), line("b", {}), line("c", {"mixup": 0.5})]
    lines[2]["errors"]["mixup"][1] = None
    assert changes(lines, "mixup", "erm") == {"a": pytest.approx(math.log(0.5))}
    assert pool(lines, ["mixup"], "erm") == []  # one table has no interval


def test_p_values_are_corrected_for_the_number_of_methods():
    lines = field(n=8, mixup=0.995, foma=1.0, ada=1.01)
    alone = {name: p_value(list(changes(lines, name, "erm").values())) for name in METHODS}
    found = {own.name: own.p for own in pool(lines, METHODS, "erm")}
    last = 0.0
    for place, name in enumerate(sorted(alone, key=lambda name: alone[name])):
        last = max(last, min(1.0, (3 - place) * alone[name]))
        assert found[name] == pytest.approx(last)


def test_what_studies_say_is_counted():
    lines = field(mixup=0.9)
    lines[0]["helps"], lines[1]["helps"], lines[2]["hurts"] = ["mixup"], ["mixup"], ["mixup"]
    (own,) = pool(lines, ["erm", "mixup", "absent"], "erm")
    assert (own.tables, own.better, own.helps, own.hurts) == (12, 12, 2, 1)
    assert own.is_sure
    assert own.mean == pytest.approx(math.log(0.9), abs=0.02)


def test_unexplained_variance_is_a_ratio_of_squares():
    assert unexplained({"auto": [1.0, 2.0], "mean": [2.0, 4.0]}) == pytest.approx(0.25)
    assert unexplained({"auto": [1.0, None], "mean": [2.0, 4.0]}) is None


def test_halves_are_cut_at_the_median():
    pairs = halves(field(mixup=1.0))
    by_trait = {low.trait: (low, high) for low, high in pairs}
    assert set(by_trait) == {"rows", "dimension", "skew"}  # the others do not vary
    low, high = by_trait["rows"]
    assert low.tables == {f"t{number}" for number in range(6)}
    assert high.tables == {f"t{number}" for number in range(6, 12)}
    assert "650" in low.words
    assert "t3" not in by_trait["dimension"][0].tables | by_trait["dimension"][1].tables
    assert by_trait["skew"][0].tables == low.tables  # however the sign


def test_the_map_shows_nothing_where_nothing_is():
    text = "\n".join(map_part(field(mixup=1.0, foma=1.0), ("mixup", "foma"), "erm"))
    assert "No method can be told from plain training in any half" in text
    assert "By none of 3 traits" in text
    assert "|" not in text


def test_the_map_finds_where_a_method_helps():
    lines = field(n=16, mixup=1.0, foma=1.0)
    for own in lines[:8]:  # those with few rows
        own["errors"]["mixup"] = [0.8 * error for error in own["errors"]["mixup"]]
    text = "\n".join(map_part(lines, ("mixup", "foma"), "erm"))
    assert f"| rows at most 850 | 8 | mixup {MINUS}20" in text
    assert "rows above" not in text.split("Changes that differ")[0]
    assert f"| mixup | rows at most 850: {MINUS}20" in text
    assert "| foma |" not in text


def test_too_few_tables_are_no_map():
    assert "Not measured yet" in map_part(field(n=2, mixup=0.5), ("mixup",), "erm")[0]
    assert "Not measured yet" in map_part([], ("mixup",), "erm")[0]


def test_the_page_says_what_is_missing():
    page = make_page([], {"boosting": []}, {})
    assert page.count("Not measured yet") == 4


def test_the_page_has_a_line_for_every_method_that_was_measured():
    lines = field(**{"mixup": 0.9, "k-mixup": 0.9, "ada": 1.1, "foma": 1.0})
    lines[0]["helps"] = ["mixup"]
    rows = [{**own, "errors": {**own["errors"], "no-rows": own["errors"]["erm"]}} for own in lines]
    page = make_page(lines, {"boosting": rows, "trees": []}, {"mixup": {"defaults": 1.234}})
    mixup = next(row for row in page.splitlines() if row.startswith(f"| mixup | {MINUS}"))
    assert "| < 0.001 | 12 of 12 | 8 % (1) | 0 % (0) | x1.23 | yes, and quickly |" in mixup
    assert f"| k-mixup | {MINUS}" in page
    assert "not measured yet | by name |" in page  # the cost of k-mixup
    assert "Leaves: ada. Comes: k-mixup." in page
    assert "lower errors with mixup, k-mixup," in page
    assert "higher ones with ada." in page
    assert "| t0 | mixup | none |" in page
    assert "- trees: not measured yet." in page
