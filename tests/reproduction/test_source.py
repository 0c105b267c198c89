"""The published figures equal the paper's LaTeX source, cell by cell, where that is at hand."""

import re
from functools import cache
from pathlib import Path

import pytest

from regaug.reproduction import published

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
# The labels of the tables, in the order of their numbers.
LABELS = (
    *("b_selection", "speed_foma", "id", "ood", "ablation", "app_noise", "noise_ood"),
    *("hyp_foma", "hyp_foma_rho", "id_std", "ood_std"),
)
# What the source calls a data set, a metric and a domain, in our words.
NAMES = {
    "Airfoil": "airfoil",
    "NO2": "no2",
    "Exchange": "exchange-rate",
    "Exchange-Rate": "exchange-rate",
    "Electricity": "electricity",
    "Echo": "echo",
    "RCF": "rcf-mnist",
    "Crimes": "crimes",
    "Poverty": "povertymap",
    "PovertyMap": "povertymap",
    "DTI": "dti",
}
# A rule between rows, or a place where the second half of a table begins anew.
RULE = re.compile(
    r"\\(?:top|mid|bottom)rule|\\hline|\\centering|\\cline\s*\{[^}]*\}"
    r"|\\multicolumn\{\d\}\{[^}]*\}"
)
LABEL_CELLS = {5: 3}


@cache
def _source() -> str:
    files = sorted(SEEDS.glob("*.txt"))
    if not files:
        pytest.skip(f"the paper's LaTeX source is not at hand: {SEEDS}")
    return files[0].read_text("utf-8")


def _read_table(number: int) -> list[list[str]]:
    """Return the rows of a table, every cell as plain text; comments are left out."""
    label = f"\\label{{tab:{LABELS[number - 1]}}}"
    text = re.sub(r"(?<!\\)%.*", "", _source())
    begin = text.index(label)
    inside = text[text.index("\\begin{tabular", begin) : text.index("\\end{tabular", begin)]
    return [
        [_plain(cell) for cell in line.split("&")] for line in inside.split("\\\\") if "&" in line
    ]


def _plain(cell: str) -> str:
    text = RULE.sub("", cell)
    text = text.replace("$^{\\dagger}$", "†").replace("$^{\\star}$", "*")
    text = text.replace("\\pm", "±").replace("\\lambda^2", "lambda^2").replace("\\lambda", "lambda")
    text = text.replace("\\methodname$_{\\rho}$", "FOMA_rho").replace("\\methodname", "FOMA")
    text = re.sub(r"\\mathrm\{e\}\^\{(-\d)\}", r"e\1", text)
    text = re.sub(r"e\^\{(-\d)\}", r"e\1", text)
    text = re.sub(r"\\(?:textbf|mathbf|bm|underline)\b", "", text)
    text = text.replace("$\\alpha$", "alpha").replace("$\\rho$", "rho")
    text = re.sub(r"[{}$]", "", text)
    text = re.sub(r"\s*±\s*", " ± ", text)
    return re.sub(r"(\d) (e-\d)", r"\1\2", " ".join(text.split()))


def _values(number: int) -> dict[str, tuple[str, ...]]:
    """Return the cells of every row of figures by its label; halves of a table put together."""
    found: dict[str, tuple[str, ...]] = {}
    width = LABEL_CELLS.get(number, 1)
    for row in _read_table(number):
        label, values = ", ".join(row[:width]), tuple(row[width:])
        if label and not label.startswith(("Dataset", "mode", ", ,")) and "begin" not in label:
            found[label] = found.get(label, ()) + values
    return found


@pytest.mark.parametrize("number", range(1, 12))
def test_every_cell_equals_the_source(number):
    source = _values(number)
    ours = {row.label: row.values for row in published.table(number).rows}
    assert source == ours


def test_settings_have_117_cells_and_none_is_empty():
    cells = [cell for number in (8, 9) for values in _values(number).values() for cell in values]
    assert len(cells) == 117
    assert "-" not in cells


@pytest.mark.parametrize("number", [1, 2, 8, 9])
def test_columns_with_one_name_each_are_in_the_order_of_the_source(number):
    _, *header = next(row for row in _read_table(number) if row[0].endswith("Dataset"))
    names = [NAMES[name.split("\\")[0]] for name in header]
    assert names == [column.split()[0] for column in published.table(number).columns]


def test_a_comment_of_the_source_is_no_row():
    _source()
    assert "Batch method" not in _values(8)
    assert not any(label.startswith("Id") for label in _values(8))
