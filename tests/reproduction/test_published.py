"""The published figures are those of the paper, typed here once more from its text."""

import math
from collections import Counter

import pytest

from regaug import data, methods
from regaug.augment import FOMA
from regaug.exceptions import UnknownNameError
from regaug.metrics import METRICS
from regaug.reproduction import published

IN_DISTRIBUTION = {"airfoil", "no2", "exchange-rate", "electricity", "echo"}
OUT_OF_DISTRIBUTION = {"rcf-mnist", "crimes", "dti", "povertymap"}
OWN = {"foma", "foma-rho", "noise"}


@pytest.mark.parametrize(
    ("number", "rows", "columns", "figures"),
    [
        (1, 4, 9, 36),
        (2, 7, 3, 21),
        (3, 9, 10, 86),
        (4, 9, 7, 57),
        (5, 10, 4, 40),
        (6, 4, 8, 32),
        (7, 4, 5, 20),
        (8, 6, 9, 0),
        (9, 7, 9, 0),
        (10, 9, 10, 86),
        (11, 9, 7, 57),
    ],
)
def test_every_table_is_whole(number, rows, columns, figures):
    table = published.table(number)
    assert table.number == number
    assert len(table.rows) == rows
    assert [len(row.values) for row in table.rows] == [columns] * rows
    assert len(set(table.columns)) == len(table.columns) == columns
    assert len({row.label for row in table.rows}) == rows
    assert len(published.cells(table=number)) == figures


@pytest.mark.parametrize(
    ("table", "name", "options", "mean", "sd"),
    [
        (1, "airfoil foma rmse", {"sampler": "random"}, 2.159, None),
        (1, "crimes foma-rho rmse", {"sampler": "random"}, 0.134, None),
        (1, "povertymap foma-rho pearson worst", {"sampler": "nearest"}, 0.488, None),
        (1, "dti foma pearson", {"sampler": "nearest"}, 0.496, None),
        (2, "airfoil erm seconds", {}, 0.058, None),
        (2, "electricity foma seconds", {"place": "layer"}, 2.837, None),
        (2, "dti foma-rho seconds", {"place": "both"}, 57.35, None),
        (3, "airfoil erm rmse", {}, 2.901, None),
        (3, "exchange-rate mixup rmse", {}, 0.0239, None),
        (3, "no2 manifold-mixup mape", {}, 13.382, None),
        (3, "echo foma mape", {}, 8.331, None),
        (3, "electricity c-mixup mape", {"source": "quoted"}, 13.372, None),
        (4, "rcf-mnist c-mixup rmse", {}, 0.153, None),
        (4, "crimes foma-rho rmse worst", {}, 0.158, None),
        (4, "dti foma pearson worst", {}, 0.430, None),
        (4, "povertymap ada pearson", {"source": "quoted"}, 0.794, None),
        (5, "no2 foma rmse", {"place": "input", "weight": "one", "scale": "leading"}, 0.79, 0.02),
        (
            5,
            "electricity foma rmse",
            {"place": "input", "weight": "lam2", "scale": "trailing"},
            0.0579,
            0.0002,
        ),
        (
            5,
            "electricity foma mape",
            {"place": "both", "weight": "one", "scale": "leading"},
            20.77,
            0.41,
        ),
        (5, "no2 foma mape", {"place": "layer", "weight": "one", "scale": "trailing"}, 13.21, 0.08),
        (6, "airfoil noise rmse", {}, 3.172, None),
        (6, "exchange-rate noise mape", {}, 1.568, None),
        (6, "no2 foma-rho mape", {}, 12.894, None),
        (7, "rcf-mnist noise rmse", {}, 0.180, None),
        (7, "crimes noise rmse worst", {}, 0.166, None),
        (7, "dti erm pearson", {}, 0.483, None),
        (10, "airfoil foma-rho rmse", {}, 1.471, 0.047),
        (10, "no2 ada rmse", {"source": "quoted"}, 0.514, 0.007),
        (10, "electricity foma mape", {}, 14.653, 0.166),
        (10, "exchange-rate c-mixup rmse", {"source": "quoted"}, 0.0203, 0.001),
        (10, "echo c-mixup mape", {}, 9.121, 0.208),
        (11, "rcf-mnist manifold-mixup rmse", {}, 0.157, 0.020),
        (11, "crimes mixup rmse worst", {}, 0.154, 0.001),
        (11, "dti foma-rho pearson", {}, 0.503, 0.008),
        (11, "povertymap erm pearson worst", {}, 0.50, 0.07),
    ],
)
def test_figures_equal_the_paper(table, name, options, mean, sd):
    cell = published.cell(*name.split(), table=table, **options)
    assert (cell.table, cell.mean, cell.sd) == (table, mean, sd)


@pytest.mark.parametrize(
    ("table", "data", "method", "printed", "mean"),
    [(4, "crimes", "ada", "1.30", 0.130), (6, "electricity", "noise", "0.600", 0.060)],
)
def test_a_misprint_keeps_what_is_printed_and_says_why_it_was_changed(
    table, data, method, printed, mean
):
    cell = published.cell(data, method, "rmse", table=table)
    assert (cell.printed, cell.mean, cell.unit) == (printed, mean, 0.001)
    assert cell.note


def test_only_two_figures_are_corrected():
    changed = [cell for cell in published.cells() if cell.mean != float(cell.printed.split()[0])]
    assert [(cell.table, cell.data) for cell in changed] == [(4, "crimes"), (6, "electricity")]


def test_every_remark_has_its_cell():
    remarks = {
        (entry["number"], remark["row"], remark["column"])
        for entry in published._entries().values()
        for remark in entry.get("remarks", ())
    }
    cells = {
        (table.number, row.label, column)
        for table in map(published.table, range(1, 12))
        for row in table.rows
        for column in table.columns
    }
    assert remarks <= cells
    assert len([cell for cell in published.cells() if cell.note]) == len(remarks)


def test_all_figures_are_plausible():
    for cell in published.cells():
        assert math.isfinite(cell.mean)
        assert cell.mean > 0
        assert cell.sd is None or 0 <= cell.sd < cell.mean / 2
        assert cell.metric != "pearson" or cell.mean <= 1
        # A step of the last digit is small, or a misplaced comma would go unseen.
        assert cell.unit <= 0.1 * cell.mean
    for number in range(1, 12):
        with_sd = {cell.sd is not None for cell in published.cells(table=number)}
        assert with_sd <= {number in (5, 10, 11)}


def test_figures_of_a_column_are_of_one_size():
    columns = {}
    for cell in published.cells():
        columns.setdefault((cell.data, cell.metric, cell.domain), []).append(cell.mean)
    for column, means in columns.items():
        # Seconds differ by up to 5.6 on Airfoil, between plain training and both places.
        assert max(means) < 6 * min(means), column


def test_names_are_those_of_the_library():
    assert {cell.method for cell in published.cells()} <= set(methods.names())
    assert {cell.data for cell in published.cells()} <= set(data.NAMES)
    assert {cell.metric for cell in published.cells()} - {"seconds"} <= set(METRICS)
    assert {cell.data for cell in published.cells(table=10)} == IN_DISTRIBUTION
    assert {cell.data for cell in published.cells(table=11)} == OUT_OF_DISTRIBUTION


def test_the_ablation_names_options_of_foma():
    for cell in published.cells(table=5):
        FOMA(scale=cell.options["scale"], weight=cell.options["weight"])


def test_sources_follow_the_marks_of_the_paper():
    for number in (3, 4, 6, 7, 10, 11):
        for row in published.table(number).rows:
            if row.label.endswith(("*", "†")):
                assert row.source == {"*": "re-run", "†": "quoted"}[row.label[-1]]
            else:
                assert row.source == ("own" if row.method in OWN else "quoted")


def test_the_appendix_and_what_the_authors_ran_go_first():
    cell = published.cell("airfoil", "c-mixup", "rmse")
    assert (cell.table, cell.source, cell.mean, cell.sd) == (10, "re-run", 2.739, 0.06)
    assert published.cell("crimes", "c-mixup", "rmse", source="quoted").mean == 0.123
    assert published.cell("crimes", "noise", "rmse").table == 7


def test_an_empty_cell_is_none_unless_another_source_has_it():
    assert published.cell("echo", "ada", "rmse") is None
    assert published.cell("povertymap", "manifold-mixup", "pearson") is None
    assert published.cell("dti", "ada", "pearson", source="re-run") is None
    assert published.cell("dti", "ada", "pearson").source == "quoted"
    assert published.cell("airfoil", "erm", "rmse", "worst") is None


# Differences of more than one step of the last digit.
DIFFERENCES = {
    "no2 manifold-mixup mape": (13.382, 13.357),
    "airfoil c-mixup rmse": (2.748, 2.739),
    "airfoil c-mixup mape": (1.645, 1.640),
    "electricity c-mixup mape": (13.349, 13.471),
    "echo c-mixup rmse": (5.362, 5.483),
    "echo c-mixup mape": (8.868, 9.121),
    "electricity foma mape": (14.614, 14.653),
    "echo foma-rho rmse": (5.512, 5.476),
    "rcf-mnist erm rmse": (0.164, 0.162),
    "crimes erm rmse": (0.136, 0.134),
    "crimes erm rmse worst": (0.170, 0.173),
    "dti erm pearson": (0.483, 0.464),
    "dti erm pearson worst": (0.439, 0.429),
    "rcf-mnist mixup rmse": (0.159, 0.176),
    "crimes mixup rmse": (0.134, 0.128),
    "crimes mixup rmse worst": (0.168, 0.154),
    "dti mixup pearson": (0.459, 0.465),
    "dti mixup pearson worst": (0.424, 0.437),
    "crimes c-mixup rmse worst": (0.166, 0.161),
    "dti foma pearson": (0.496, 0.492),
    "dti foma pearson worst": (0.430, 0.442),
    "rcf-mnist ada rmse": (0.175, 0.162),  # the quoted row; the re-run one has 0.171 in both
}


def test_main_text_and_appendix_differ_in_these_cells_only():
    found = []
    for main in (*published.cells(table=3), *published.cells(table=4)):
        key = {name: getattr(main, name) for name in ("data", "method", "metric", "domain")}
        (appendix,) = published.cells(table=main.table + 7, source=main.source, **key)
        # A step of the last digit is no difference: here it is rounded, there it is cut off.
        if abs(main.mean - appendix.mean) > 1.001 * max(main.unit, appendix.unit):
            words = [word for word in key.values() if word != "average"]
            found.append((" ".join(words), (main.mean, appendix.mean)))
    assert dict(found) == DIFFERENCES
    assert len(found) == len(DIFFERENCES)


def test_close_batches_of_table_1_are_the_main_results():
    other = []
    for cell in published.cells(table=1, options={"sampler": "nearest"}):
        where = 3 if cell.data in IN_DISTRIBUTION else 4
        main = published.cell(cell.data, cell.method, cell.metric, cell.domain, table=where)
        if main.mean != cell.mean:
            other.append((cell.data, cell.method, cell.mean, main.mean))
    assert other == [("povertymap", "foma-rho", 0.488, 0.482)]


def test_noise_tables_repeat_the_main_results():
    for number, main in ((6, 3), (7, 4)):
        for cell in published.cells(table=number):
            if cell.method != "noise":
                same = published.cell(cell.data, cell.method, cell.metric, cell.domain, table=main)
                assert same.mean == cell.mean


# Learning rate, batch size, place, epochs, singular values, alpha, and rho in table 9.
FOMA_SETTINGS = {
    "airfoil": (5e-4, 32, "layer", 200, "trailing", 0.8),
    "electricity": (5e-4, 128, "both", 150, "trailing", 1.1),
    "crimes": (5e-3, 8, "input", 200, "trailing", 0.6),
    "povertymap": (1e-3, 32, "layer", 50, "trailing", 1.5),
    "dti": (5e-4, 64, "layer", 200, "leading", 0.5),
}
FOMA_RHO_SETTINGS = {
    "airfoil": (5e-4, 128, "input", 100, "leading", 1.4, 0.975),
    "no2": (1e-3, 8, "input", 250, "trailing", 0.3, 0.95),
    "exchange-rate": (1e-3, 8, "input", 150, "leading", 1, 0.8),
    "crimes": (1e-3, 64, "both", 100, "leading", 0.6, 0.875),
    "dti": (1e-2, 64, "layer", 250, "leading", 0.6, 0.825),
}


@pytest.mark.parametrize(
    ("method", "expected"), [("foma", FOMA_SETTINGS), ("foma-rho", FOMA_RHO_SETTINGS)]
)
def test_settings_equal_the_paper(method, expected):
    for name, values in expected.items():
        found = published.settings(name, method)
        own = found.method_settings
        assert values == (
            found.learning_rate,
            found.batch_size,
            own["place"],
            found.epochs,
            own["scale"],
            own["alpha"],
            *([own["rho"]] if "rho" in own else []),
        )


@pytest.mark.parametrize("method", ["foma", "foma-rho"])
@pytest.mark.parametrize("name", sorted(IN_DISTRIBUTION | OUT_OF_DISTRIBUTION))
def test_settings_can_be_used_as_they_are(name, method):
    ready = methods.get(method).prepare(published.settings(name, method).method_settings)
    full, augmentation = ready.settings, ready.augmentation
    assert (augmentation.p, augmentation.anneal) == (1.0, None)
    assert full["place"] in ("input", "layer", "both")
    assert ("rho" in full) == (method == "foma-rho")


def test_places_and_scales_are_counted_as_printed():
    def count(method, option):
        names = IN_DISTRIBUTION | OUT_OF_DISTRIBUTION
        return Counter(published.settings(name, method).method_settings[option] for name in names)

    assert count("foma", "place") == {"layer": 5, "both": 2, "input": 2}
    assert count("foma", "scale") == {"trailing": 8, "leading": 1}
    assert count("foma-rho", "place") == {"input": 4, "layer": 4, "both": 1}
    assert count("foma-rho", "scale") == {"leading": 5, "trailing": 4}


def test_changing_what_was_returned_changes_nothing_else():
    published.settings("airfoil", "foma").method_settings["alpha"] = 99
    assert published.settings("airfoil", "foma").method_settings["alpha"] == 0.8


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: published.cell("airfoi", "erm", "rmse"), "data set .* Did you mean 'airfoil'"),
        (lambda: published.cell("airfoil", "fomarho", "rmse"), "method .* Did you mean 'foma-rho'"),
        (lambda: published.cell("dti", "erm", "pearsons"), "metric .* Did you mean 'pearson'"),
        (lambda: published.cell("dti", "erm", "pearson", "wors"), "domain .* mean 'worst'"),
        (lambda: published.cell("dti", "ada", "pearson", source="rerun"), "source .* 're-run'"),
        (lambda: published.cell("no2", "foma", "rmse", samplers="random"), "mean 'sampler'"),
        (lambda: published.cell("no2", "foma", "rmse", table=8), "table of results '8'"),
        (lambda: published.table(12), "table of the paper '12'"),
        (lambda: published.cells(dataset="no2"), "attribute of a cell 'dataset'"),
        (lambda: published.settings("no2", "erm"), "Available: foma, foma-rho"),
        (lambda: published.settings("no3", "foma"), "Did you mean 'no2'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(call, hint):
    with pytest.raises(UnknownNameError, match=hint):
        call()
