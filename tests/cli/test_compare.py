"""``regaug compare`` and what it leaves on the disk."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import regaug
from regaug.cli import live
from regaug.cli.live import Live
from regaug.cli.main import app
from regaug.data import read_table
from regaug.ensemble import Ensemble
from regaug.metrics import Scores
from regaug.problems import Problem
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.store import Store
from regaug.studies.plan import make_plan
from regaug.studies.progress import Progress
from regaug.studies.study import Study

SMALL = ["--trials", "2", "--splits", "2", "-m", "erm,mixup", "-j", "1"]
NAME = "full-mixup-trials-2-splits-2"
BESIDE = {"mean", "ridge", "boosting", "trees", "gp"}
# Six recipes, two trials of two methods, and the baselines, on two splits.
N_RUNS = 2 * (6 + 2 * 2 + len(BESIDE))


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    rng = np.random.default_rng(0)
    size = rng.uniform(30, 120, 90)
    frame = pd.DataFrame({"size": size, "city": rng.choice(["Oslo", "Rome"], 90)})
    frame["price"] = 3 * size + 40 * (frame["city"] == "Rome") + rng.normal(0, 10, 90)
    path = tmp_path_factory.mktemp("data") / "houses.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(autouse=True)
def _short(monkeypatch, shorten):
    shorten(monkeypatch, 4)


@pytest.fixture
def _few_baselines(monkeypatch):
    """For tests that do not look at them: those that take no time."""
    monkeypatch.setattr(
        "regaug.studies.eligibility.baseline_names", lambda split: ("mean", "ridge")
    )


def invoke(out, *arguments):
    """Run a tiny study."""
    return CliRunner().invoke(app, ["compare", *map(str, arguments), *SMALL, "--out", str(out)])


@pytest.fixture
def run(tmp_path):
    """Run a tiny study in a folder of its own."""
    return lambda *arguments: invoke(tmp_path / "runs", *arguments)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def first(out, houses, shorten):
    """What a command has said that has left a study in the folder."""
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch, 4)
        return invoke(out, houses, "--target", "price")


@pytest.fixture
def folder(first, out):
    return out / "houses" / NAME


def test_it_prints_a_leaderboard_and_a_verdict(first):
    assert first.exit_code == 0, first.output
    for name in {"erm", "mixup", "nets", "auto"} | BESIDE:
        assert f"\n{name} " in first.stdout
    assert "tier" in first.stdout
    assert re.search(r"Use |Keep it plain|Look for inputs", first.stdout)
    assert "R5: The study has 2 splits" in first.stdout
    assert "docs/checks.md#r4-few-validation-rows" in first.stdout
    assert f"{N_RUNS} runs; this takes about" in first.stderr
    assert "90 rows" in first.stderr


def test_it_leaves_a_report_a_model_and_every_run(folder, houses):
    assert "<html" in (folder / "report.html").read_text()
    study = Study.open(folder)
    assert set(study.chosen) == {"erm", "mixup"} | BESIDE
    model = Ensemble.load(folder / "model")
    assert model.method == study.advised
    assert len(model.predict(houses)) == 90


def test_the_same_command_does_nothing_twice(first, out, houses):
    second = invoke(out, houses, "--target", "price")
    assert f"{N_RUNS} runs, all of them done" in second.stderr
    assert second.stdout == first.stdout


@pytest.mark.usefixtures("first", "_few_baselines")
def test_another_seed_has_a_folder_of_its_own(out, houses):
    result = invoke(out, houses, "--target", "price", "--seed", "1")
    assert result.exit_code == 0, result.output
    other = out / "houses" / f"{NAME}-seed-1"
    assert f"report: {other / 'report.html'} (now also {out / 'houses' / 'latest'}" in result.stdout
    assert Study.open(out / "houses").folder == other
    assert Study.open(out / "houses" / NAME).config.seed == 0


def test_json_says_the_same(folder, out, houses):
    result = invoke(out, houses, "--target", "price", "--json")
    (found,) = json.loads(result.stdout)
    study = Study.open(folder)
    assert found["verdict"] == study.verdict.text
    assert [row["name"] for row in found["rows"]] == [row.name for row in study.comparison.rows]
    assert found["model"] == str(folder / "model")
    assert len(found["pairs"]) == 9 * 8 // 2
    assert [check["code"] for check in found["checks"]] == [own.code for own in study.checks]
    assert found["use"] == study.verdict.use
    assert {"mae", "r2"} <= set(found["details"]["ridge"]["scores"])
    assert found["details"]["ridge"]["fit_seconds"] > 0
    assert found["configuration"] == json.loads(json.dumps(study.config.to_dict()))
    assert {name: Run.from_dict(run) for name, run in found["best"].items()} == study.best


@pytest.mark.usefixtures("_few_baselines")
def test_without_data_it_takes_the_built_in_table(run, tmp_path):
    result = run()
    assert result.exit_code == 0, result.output
    assert (tmp_path / "runs" / "diabetes" / NAME / "report.html").exists()
    assert (tmp_path / "runs" / "diabetes" / "latest" / "report.html").exists()


@pytest.mark.usefixtures("_few_baselines")
def test_the_rule_of_a_split_can_be_chosen(run, houses):
    result = run(houses, "--target", "price", "--group", "city", "--split", "random")
    assert result.exit_code == 0, result.output
    result = run("diabetes", "--split", "time")
    assert result.exit_code == 1
    assert "knows how it is split" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["houses.csv"], "There is no file"),
        (["diabetes", "--target", "y"], "knows its columns"),
        (["diabetes", "--metric", "rsme"], "`--metric` must be one of"),
        (["diabetes", "--focus", "high"], "`--focus` must be left out for the metric 'rmse'"),
        (["diabetes", "--metric", "tail-rmse", "--focus", "top"], "`--focus` must be one of"),
    ],
)
def test_wrong_use_is_told_in_one_line(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_misspelled_method_gets_a_suggestion(tmp_path):
    result = CliRunner().invoke(app, ["compare", "-m", "fomma", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "Did you mean 'foma'" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_python_leaves_the_same_files_as_the_command(folder, houses, tmp_path):
    table, other = read_table(houses, target="price"), tmp_path / "python"
    study = regaug.compare(table, methods=["erm", "mixup"], trials=2, splits=2, out=other)
    assert study.folder == other / "houses" / NAME
    assert (other / "houses" / "latest").resolve() == study.folder
    other = study.folder
    assert files_in(folder) == files_in(other)
    assert len(files_in(folder)) == 7
    for name in ("study.json", "about.json", "targets.safetensors"):
        assert (folder / name).read_bytes() == (other / name).read_bytes()
    assert records_in(folder) == records_in(other)
    assert len(records_in(folder)) == N_RUNS
    assert str(study) == str(Study.open(folder))
    # All of the page but how long it took.
    pages = [text_of(place / "report.html") for place in (folder, other)]
    assert pages[0] == pages[1]
    models = [Ensemble.load(place / "model") for place in (folder, other)]
    assert models[0].predict(houses).mean.tolist() == models[1].predict(houses).mean.tolist()


def files_in(folder):
    """Return the names of all files; a file of runs is named after its process."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {"runs" if name.startswith("runs-") else name for name in found} - {"runs"}


def records_in(folder):
    records = Store.open(folder).records().items()
    return {key: repr(replace(record, seconds=0.0)) for key, record in records}


def text_of(page):
    """Return the text of a page without the times of its runs."""
    texts = []
    reader = HTMLParser()
    reader.handle_data = texts.append
    reader.feed(page.read_text(encoding="utf-8").replace(str(page.parent), "HERE"))
    is_time = re.compile(r"[0-9] [mµ]?s$").search
    return [text for text in texts if not is_time(text.strip()) and "took" not in text]


@pytest.fixture
def plan(houses):
    problem = Problem.from_table(read_table(houses, target="price"), splits=2)
    return make_plan(problem, methods=["erm"], trials=2)


def make_progress(plan, done=0, *, error=None, seconds=0.0):
    """An event after a run with this validation error; at the beginning without one."""
    scores = {} if error is None else {"validation": Scores(9, error, 1.0, None, 0, error, None)}
    run = next(run for run in plan.runs if not run.is_baseline)
    record = RunRecord(run, scores, "finished", 1, 1, 0.5, (6, 2, 2), {})
    records = () if error is None else (record,)
    return Progress(plan, records, {"erm": done} if done else {}, seconds, ["90 rows"])


def test_lines_in_a_pipe_say_how_far_it_is(capsys, monkeypatch, plan):
    monkeypatch.setattr(live, "_PAUSE", 0.0)
    with Live() as shown:
        shown(make_progress(plan, seconds=100))
        assert capsys.readouterr().err.splitlines() == [
            "90 rows",
            "26 runs; this takes about 1 min 40 s.",
        ]
        shown(make_progress(plan, 1, error=2.0, seconds=90))
    assert capsys.readouterr().err == "1 of 26 runs, about 1 min 30 s left\n"


def test_a_study_that_goes_on_says_what_is_done(capsys, plan):
    with Live() as shown:
        shown(make_progress(plan, 4))
    assert "26 runs, 4 of them done; this takes about 0 s." in capsys.readouterr().err


@pytest.mark.parametrize(("metric", "best"), [("rmse", "1.500"), ("r2", "2.000")])
def test_the_table_on_a_terminal_has_the_best_value_of_every_method(plan, metric, best):
    from rich.console import Console

    plan = replace(plan, config=replace(plan.config, metric=metric))
    shown = Live()
    for error in (2.0, 1.5, float("nan")):
        progress = make_progress(plan, 3, error=error)
        shown(progress)
    console = Console(width=80)
    with console.capture() as text:
        console.print(shown._table(progress))
    lines = [line.split() for line in text.get().splitlines()]
    assert ["erm", "3", "/", "16", best] in lines
    assert ["ridge", "0", "/", "2"] in lines


@pytest.mark.usefixtures("_few_baselines")
def test_several_targets_are_told_in_their_own_units_too(run, houses, tmp_path):
    frame = pd.read_csv(houses).assign(share=lambda own: 1e-3 * own["size"])
    frame["share"] += 1e-3 * np.random.default_rng(0).normal(size=len(frame))
    frame.to_csv(tmp_path / "both.csv", index=False)
    result = run(tmp_path / "both.csv", "--target", "price", "--target", "share")
    assert result.exit_code == 0, result.output
    assert "RMSE / spread" in result.stdout
    assert "divided by its standard deviation among the scored rows" in result.stdout
    lines = [line.split() for line in result.stdout.splitlines()]
    place = next(i for i, words in enumerate(lines) if words[1:] == ["RMSE", "MAE", "R2"])
    assert [words[0] for words in lines[place + 1 : place + 3]] == ["price", "share"]
    assert float(lines[place + 2][1]) < 0.1 < float(lines[place + 1][1])


def test_it_ends_with_what_to_type_next(first, folder, tmp_path):
    assert "\nUse it (" in first.stdout
    assert "\n  regaug fit " in first.stdout
    assert "\n  model.save(" in first.stdout
    study = Study.open(folder)
    words = ["report", str(folder), "-o", str(tmp_path / "page.html"), "--json"]
    found = json.loads(CliRunner().invoke(app, words).stdout)
    assert found["advised"] == study.advised
    assert found["command"].startswith("regaug fit ")
    assert found["python"].startswith("import regaug\n")


# Regressors


@pytest.mark.usefixtures("_few_baselines")
def test_a_regressor_is_compared_by_its_name_or_by_where_it_is_made(run, houses, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "from sklearn.neighbors import KNeighborsRegressor\n\n\n"
        "def make():\n    return KNeighborsRegressor(4)\n"
    )
    for model, name in (("ridge", "ridge"), (f"{file}:make", "KNeighborsRegressor")):
        result = run(houses, "--target", "price", "--model", model)
        assert result.exit_code == 0, result.stderr
        assert "against no-rows" in result.stdout
        assert "fit_estimator(" in result.stdout
        assert "regaug fit" not in result.stdout
        assert (tmp_path / "runs" / "houses" / f"full-{name}-mixup-trials-2-splits-2").is_dir()


@pytest.mark.usefixtures("_few_baselines")
def test_rows_from_elsewhere_and_whole_numbers(run, houses, tmp_path):
    more = tmp_path / "more.csv"
    pd.read_csv(houses).assign(size=lambda frame: frame["size"] + 0.5).to_csv(more, index=False)
    result = run(
        houses, "--target", "price", "--model", "ridge", "--rows", more, "--keep-integers", "--json"
    )
    assert result.exit_code == 0, result.stderr
    assert "Rows from elsewhere: 90 of more.csv." in result.stderr
    (found,) = json.loads(result.stdout)
    assert found["configuration"]["methods"] == ["no-rows", "mixup", "repeats", "rows"]
    assert found["configuration"]["keep_integers"] is True
    assert found["command"] == ""


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--epochs", "5", "`--epochs` must be left out for a table, got 5"),
        ("--fair", "time", "`--fair` must be 'epochs' for a table, got 'time'"),
        ("--fair", "luck", "`--fair` must be one of 'epochs', 'time', got 'luck'"),
    ],
)
def test_the_length_of_trainings_is_for_networks(run, houses, option, value, message):
    done = run(houses, "--target", "price", option, value)
    assert done.exit_code == 1
    assert message in done.stderr
