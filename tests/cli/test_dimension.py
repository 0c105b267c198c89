"""``regaug dimension``."""

import json
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import torch

from regaug import linear_dimension, two_nn
from regaug.data import load, standardize


@pytest.fixture
def sheet(tmp_path):
    """A file with a plane in six columns, and a target that is no part of it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 6))
    frame = pd.DataFrame(x, columns=[f"column {i}" for i in range(6)])
    frame["noise"] = rng.normal(size=400)
    frame.to_csv(tmp_path / "sheet.csv", index=False)
    return tmp_path / "sheet.csv"


def estimate(run, *arguments):
    result = run("dimension", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_plane_has_two_dimensions(run, sheet):
    found = estimate(run, sheet, "--drop", "noise")
    assert (found["rows"], found["columns"], found["dropped"]) == (400, 6, 0)
    assert found["two_nn"] == pytest.approx(2.0, abs=0.3)
    assert found["linear"] == {"0.9": 1, "0.95": 1, "0.99": 1}  # of two directions, both are 100 %


def test_a_column_that_is_not_left_out_counts(run, sheet):
    found = estimate(run, sheet)
    assert found["columns"] == 7
    assert found["two_nn"] == pytest.approx(3.0, abs=0.4)
    assert found["linear"]["0.99"] == 2


def test_with_a_target_it_is_that_of_the_training_rows(run, sheet):
    found = estimate(run, sheet, "--target", "noise")
    assert (found["rows"], found["columns"]) == (240, 7)
    assert found["two_nn"] == pytest.approx(3.0, abs=0.5)


def test_the_lines_say_what_json_says(run, sheet):
    found = estimate(run, sheet)
    lines = run("dimension", sheet).stdout.splitlines()
    assert lines[0] == "400 rows, 7 columns (inputs and targets)"
    assert lines[1].startswith(f"TwoNN: {found['two_nn']:.2f} (maximum likelihood: ")
    assert lines[-1].startswith("linear: ")
    assert lines[-1].endswith(f"{found['linear']['0.99']} at 99%")


def test_it_says_how_many_rows_it_has_looked_at(run, sheet, monkeypatch):
    assert estimate(run, sheet)["looked_at"] == 400
    assert "looked at" not in run("dimension", sheet).stdout
    monkeypatch.setattr("regaug.cli.dimension.MOST_POINTS", 100)
    assert estimate(run, sheet)["looked_at"] == 100
    assert "TwoNN has looked at 100 rows, drawn at random" in run("dimension", sheet).stdout


def test_equal_rows_are_counted(run, tmp_path):
    points = np.random.default_rng(0).normal(size=(60, 3))
    frame = pd.DataFrame(np.vstack([points, points[:5]]), columns=list("abc"))
    frame.to_csv(tmp_path / "twice.csv", index=False)
    assert estimate(run, tmp_path / "twice.csv")["dropped"] > 0
    assert (
        "rows were left out: another row is equal"
        in run("dimension", tmp_path / "twice.csv").stdout
    )


def test_categories_dates_and_gaps_are_encoded(run, files):
    assert estimate(run, files / "houses.csv", "--target", "price")["columns"] > 9


def test_diabetes_needs_no_file(run):
    split = standardize(load("diabetes").split(seed=0))
    rows = torch.cat([split.train.x, split.train.y], dim=1)
    found = estimate(run, "diabetes")
    assert found["two_nn"] == pytest.approx(two_nn(rows).dimension)
    assert found["linear"]["0.9"] == linear_dimension(rows, shares=(0.9,))[0]


def test_airfoil_is_found_through_its_folder(run, real_data, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    found = estimate(run, "airfoil")
    assert found["columns"] == 6
    assert 1 < found["two_nn"] < 6


def test_the_plot_is_a_picture(run, sheet, tmp_path):
    png, svg = tmp_path / "plots" / "plot.png", tmp_path / "plot.SVG"
    result = run("dimension", sheet, "--plot", png)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, f"The plot is in {png}.")
    from matplotlib.image import imread

    pixels = imread(png)
    assert pixels.ndim == 3
    assert pixels[..., :3].std() > 0.01  # something is drawn
    assert run("dimension", sheet, "--plot", svg).exit_code == 0
    root = ElementTree.parse(svg).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(root.iter("{http://www.w3.org/2000/svg}use"))) > 100  # a mark for every row


def test_a_plot_that_cannot_be_written_fails_in_one_line(fails, sheet, tmp_path):
    assert "`--plot` must end in .svg, .png or .pdf" in fails(
        "dimension", sheet, "--plot", tmp_path / "plot.xyz"
    )
    line = fails("dimension", sheet, "--plot", sheet / "plot.png")
    assert f"Could not write {sheet / 'plot.png'}" in line


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("--target", "noize"), "Did you mean 'noise'?"),
        (("--drop", "noize"), "Did you mean 'noise'?"),
        (("--group", "column"), "Did you mean 'column "),
    ],
)
def test_a_misspelled_column_is_wrong_usage(fails, sheet, arguments, hint):
    assert hint in fails("dimension", sheet, *arguments, code=2)


def test_a_missing_file_fails_in_one_line(fails, sheet):
    line = fails("dimension", sheet.with_name("shet.csv"))
    assert "Did you mean 'sheet.csv'?" in line


def test_too_few_rows_fail_in_one_line(fails, tmp_path):
    pd.DataFrame({"a": [1.5, 2.5], "b": [3.5, 5.5]}).to_csv(tmp_path / "two.csv", index=False)
    fails("dimension", tmp_path / "two.csv")
