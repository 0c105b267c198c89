"""``regaug augment``."""

import json

import pandas as pd
import pytest

from regaug.data import read_table
from regaug.data.tabular.generation import generate

USED = ["size", "rooms", "city", "sold", "garden", "street", "country", "price"]


@pytest.fixture
def augment(run, houses, tmp_path):
    """Run the command on the houses and return what it printed and wrote."""

    def call(*arguments, method="mixup", rows=50, out="more.csv"):
        path = tmp_path / out
        options = ("--target", "price", "--method", method, "--rows", rows, "-o", path)
        result = run("augment", houses, *options, *arguments)
        assert result.exit_code == 0, result.output
        return result.stdout, path

    return call


def test_it_writes_new_rows_with_the_tables_columns(augment, houses):
    printed, path = augment()
    new, own = pd.read_csv(path), pd.read_csv(houses)
    assert list(new.columns) == USED
    assert new.dtypes.equals(own[USED].dtypes)
    assert len(new) == 50
    head, left_out, *about, last = printed.splitlines()
    assert head == f"50 new rows, made by mixup, written to {path}."
    assert left_out == "Left out, as they are no inputs: 'number'."
    assert last.startswith("They are for training only: measure errors on rows that they were not")
    words = ("Beside the table's own rows, over 4 columns", "- means differ by", "- standard dev")
    for line, start in zip(about, (*words, "- correlations differ by", "- "), strict=False):
        assert line.startswith(start)


def test_rows_that_vary_too_little_are_said_to_and_others_are_not(augment):
    printed, _ = augment(rows=400)
    assert "less than the table: a model sees too little of the ends. The method epbeta" in printed
    for method in ("epbeta-mixup", "smogn"):  # what is rare is meant to be other
        printed, _ = augment(method=method, rows=400, out=f"{method}.csv")
        assert "less than the table" not in printed
        assert "- means differ by" in printed


def test_what_it_writes_is_what_the_library_makes(augment, houses):
    _, path = augment("--seed", 3, method="cems", rows=70, out="more.parquet")
    expected = generate(read_table(houses, target="price"), method="cems", rows=70, seed=3)
    pd.testing.assert_frame_equal(pd.read_parquet(path), expected)


@pytest.mark.parametrize("method", ["mixup", "foma-rho", "cems", "feature-mix", "smogn"])
def test_what_it_writes_can_be_read_as_a_table(augment, houses, method):
    _, path = augment(method=method, rows=120)
    before, after = (
        read_table(source, target="price").split(seed=0).encoder.columns
        for source in (houses, path)
    )
    assert {(c.name, c.kind) for c in after} == {(c.name, c.kind) for c in before}


def test_rare_rows_are_made_at_the_end_that_is_named(augment, houses, run, tmp_path):
    _, path = augment("--focus", "high", method="smogn", rows=60)
    new, own = pd.read_csv(path), pd.read_csv(houses)
    assert new["price"].median() > own["price"].quantile(0.85)
    assert set(new["city"].dropna()) <= set(own["city"].dropna())
    options = ("--target", "price", "--rows", 5, "-o", tmp_path / "other.csv")
    for arguments, message in (
        (("--method", "mixup", "--focus", "high"), "`--focus` must be left out for the method"),
        (
            ("--method", "smogn", "--focus", "top"),
            "`--focus` must be high, low, both or a column: Unknown column 'top'",
        ),
    ):
        result = run("augment", houses, *options, *arguments)
        assert result.exit_code in (1, 2)
        assert message in result.stderr


def test_without_a_method_the_spread_is_kept(run, houses, tmp_path):
    out = tmp_path / "more.csv"
    result = run("augment", houses, "--target", "price", "--rows", 400, "-o", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("400 new rows, made by epbeta-mixup, written to ")
    own = pd.read_csv(houses)["price"].std()
    assert pd.read_csv(out)["price"].std() == pytest.approx(own, rel=0.12)


def test_append_puts_the_tables_own_rows_first(augment, houses):
    printed, path = augment("--append")
    written, own = pd.read_csv(path), pd.read_csv(houses)
    pd.testing.assert_frame_equal(written.head(len(own)), own[USED])
    assert len(written) == len(own) + 50
    assert printed.startswith("140 rows of the table and 50 new rows, made by mixup, written to ")


def test_groups_times_and_dropped_columns_are_left_out(augment):
    printed, path = augment("--group", "city", "--time", "sold", "--drop", "rooms", "--json")
    found = json.loads(printed)
    moments = found.pop("moments")
    assert moments["columns"].keys() == {"size", "street", "price"}
    assert moments["columns"]["price"].keys() == {"mean", "spread", "range"}
    assert moments["spread"] < 0.0 < moments["range"] <= 1.0
    assert moments["correlations"][0]["columns"] == ["size", "street"]
    assert found == {
        "written": str(path),
        "replaces": "nothing",
        "method": "mixup",
        "new_rows": 50,
        "own_rows": 0,
        "left_out": ["number", "rooms", "city", "sold"],
    }
    assert list(pd.read_csv(path).columns) == ["size", "garden", "street", "country", "price"]


def test_a_named_data_set_has_numbered_columns(run, tmp_path):
    out = tmp_path / "more.tsv"
    result = run("augment", "diabetes", "--method", "mixup", "--rows", 9, "-o", out)
    assert result.exit_code == 0
    new = pd.read_csv(out, sep="\t")
    assert list(new.columns) == [*(f"x{i}" for i in range(1, 11)), "target"]
    assert len(new) == 9


@pytest.mark.parametrize(
    ("method", "code", "words"),
    [
        ("erm", 1, "`--method` must make new rows, got 'erm'"),
        ("manifold-mixup", 1, "`--method` must act on inputs, got 'manifold-mixup'"),
        ("mixap", 2, "Did you mean 'mixup'?"),
    ],
)
def test_a_method_that_makes_no_rows_is_refused(fails, houses, tmp_path, method, code, words):
    out = tmp_path / "more.csv"
    options = ("--target", "price", "--method", method, "--rows", 5, "-o", out)
    assert words in fails("augment", houses, *options, code=code)
    assert not out.exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--method", "mixup", "-o", "more.csv"),
        ("--method", "mixup", "--rows", 0, "-o", "more.csv"),
        ("--method", "mixup", "--rows", 5),
        ("--method", "mixup", "--rows", 5, "--seed", -1, "-o", "more.csv"),
    ],
)
def test_wrong_usage_exits_with_two(run, houses, options):
    assert run("augment", houses, "--target", "price", *options).exit_code == 2


def test_wrong_names_fail_in_one_line(fails, houses, tmp_path):
    options = ("--method", "mixup", "--rows", 5, "-o", tmp_path / "more.csv")
    assert "--target NAME" in fails("augment", houses, *options, code=2)
    assert "Did you mean 'price'?" in fails("augment", houses, "-t", "prize", *options, code=2)
    assert "houses.csv" in fails("augment", houses.with_name("hauses.csv"), *options)
    assert list(tmp_path.iterdir()) == []
