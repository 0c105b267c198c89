"""No command writes over its input, ever; over another file of the user only by force."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from regaug.data.tabular import generation
from regaug.ensemble import Ensemble, entry
from regaug.exceptions import ArgumentError, OverwriteError
from regaug.studies.study import Study

QUICK = ("--method", "erm", "--members", 2)
ROWS = ("--target", "price", "--method", "mixup", "--rows", 10)


@pytest.fixture
def mine(files, tmp_path, monkeypatch):
    """A folder of the user's own, with a table, which commands are run in."""
    shutil.copy(files / "houses.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_work(monkeypatch):
    """Refusals come before the work."""

    def refuse(*arguments, **options):
        raise AssertionError("nothing must be done")

    monkeypatch.setattr(entry, "fit", refuse)
    monkeypatch.setattr(generation, "generate", refuse)
    monkeypatch.setattr(Ensemble, "load", refuse)
    monkeypatch.setattr(Study, "open", refuse)


def commands(model):
    """Commands that write a file, but for the name of that file, by what they read."""
    return {
        "augment": ("augment", "houses.csv", *ROWS, "-o"),
        "predict": ("predict", model, "houses.csv", "-o"),
        "dimension": ("dimension", "houses.csv", "--plot"),
        "fit": ("fit", "houses.csv", "--target", "price", *QUICK, "--out"),
        "report": ("report", "runs/houses", "-o"),
    }


WRITING = ["augment", "predict", "fit"]


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("command", WRITING)
@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "force"])
def test_the_input_is_never_written_over(fails, mine, model, command, force):
    before = Path("houses.csv").read_bytes()
    Path("link.csv").symlink_to("houses.csv")
    Path("hard.csv").hardlink_to("houses.csv")
    for name in ("houses.csv", "./houses.csv", mine / "houses.csv", "link.csv", "hard.csv"):
        line = fails(*commands(model)[command], name, *force)
        assert line.startswith("Error: `--out` must not be what is read, got ")
    assert Path("houses.csv").read_bytes() == before


def test_a_plot_is_a_picture_and_no_table(fails, mine, model):
    line = fails(*commands(model)["dimension"], "houses.csv", "--force")
    assert "`--plot` must end in .svg, .png or .pdf" in line


@pytest.mark.usefixtures("no_work")
def test_the_files_of_a_model_are_inputs_of_predict(fails, mine, model):
    copied = shutil.copytree(model, "copied")
    pd.DataFrame({"a": [1]}).to_csv("copied/notes.csv", index=False)
    line = fails("predict", copied, "houses.csv", "-o", "copied/notes.csv", "--force")
    assert "which lies in copied" in line


@pytest.mark.usefixtures("no_work")
def test_the_file_of_a_named_data_set_is_an_input(fails, mine, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", "data")
    place = Path("data/no2/547_no2.tsv.gz")
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    Path("more.csv").hardlink_to(place)
    line = fails("augment", "no2", "--method", "mixup", "--rows", 5, "-o", "more.csv", "--force")
    assert "`--out` must not be what is read" in line


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("command", ["augment", "predict"])
def test_another_table_is_not_written_over(fails, mine, model, command):
    Path("more.csv").write_text("mine")
    line = fails(*commands(model)[command], "more.csv")
    assert "`--out` must be new, got more.csv" in line
    assert line.endswith("Name another, or replace it: --force.\n")
    assert Path("more.csv").read_text() == "mine"


@pytest.mark.parametrize("command", ["augment", "predict"])
def test_force_replaces_another_table_and_says_so(run, mine, model, command):
    Path("more.csv").write_text("mine")
    words = commands(model)[command]
    result = run(*words, "more.csv", "--force")
    assert result.exit_code == 0, result.output
    assert "written to more.csv. It replaces what was there." in result.stdout
    assert len(pd.read_csv("more.csv")) in (10, 140)
    again = run(*words, "more.csv")  # a table does not say who has written it
    assert again.exit_code == 1
    assert json.loads(run(*words, "more.csv", "--force", "--json").stdout)["replaces"] == "other"


def test_a_report_ends_in_html_and_replaces_none_but_reports(fails, run, mine, write_study):
    write_study(Path("runs/houses"))
    before = Path("houses.csv").read_bytes()
    for force in ((), ("--force",)):
        line = fails("report", "runs/houses", "-o", "houses.csv", *force)
        assert line == "Error: `--out` must end in .html, got 'houses.csv'.\n"
    assert Path("houses.csv").read_bytes() == before
    Path("report.html").write_text("<html>my own page</html>")
    assert "`--out` must be new, got report.html" in fails("report", "runs/houses")
    forced = run("report", "runs/houses", "--force")
    assert "The report is in report.html. It replaces what was there." in forced.stdout
    again = run("report", "runs/houses")
    told = "The report is in report.html. It replaces the one that regaug wrote before."
    assert told in again.stdout


def test_plots_are_written_beside_the_users_own(fails, run, mine, write_study):
    write_study(Path("runs/houses"))
    Path("plots").mkdir()
    Path("plots/mine.svg").write_text("<svg/>")
    first = run("report", "runs/houses", "--svg", "plots")
    assert first.exit_code == 0, first.output
    assert run("report", "runs/houses", "--svg", "plots").exit_code == 0
    assert Path("plots/mine.svg").read_text() == "<svg/>"
    Path("plots/splits.svg").write_text("<svg>mine</svg>")
    others = {path: path.read_bytes() for path in Path("plots").iterdir()}
    line = fails("report", "runs/houses", "--svg", "plots", "-o", "other.html")
    assert "`--svg` must be new, got plots/splits.svg" in line
    assert {path: path.read_bytes() for path in Path("plots").iterdir()} == others


def test_a_plot_replaces_a_plot_and_nothing_else(fails, run, mine, model):
    for ending in ("svg", "png", "pdf"):
        name = f"plot.{ending}"
        Path(name).write_text("mine")
        assert f"`--plot` must be new, got {name}" in fails(*commands(model)["dimension"], name)
        assert Path(name).read_text() == "mine"
        Path(name).unlink()
        for remark in ("", " It replaces the one that regaug wrote before."):
            printed = run(*commands(model)["dimension"], name).stdout
            assert printed.splitlines()[-1] == f"The plot is in {name}.{remark}"


def test_a_model_replaces_a_model_and_nothing_else(fails, run, mine, model):
    words = commands(model)["fit"]
    assert run(*words, "model").exit_code == 0
    told = "The model is in model. It replaces the one that regaug wrote before. Predict with: "
    assert told in run(*words, "model").stdout
    Path("other").mkdir()
    for name in ("model.json", "model.safetensors"):
        Path("other", name).write_text("{}")
    assert "`--out` must be new, got other" in fails(*words, "other")
    assert Path("other/model.json").read_text() == "{}"
    assert "It replaces what was there." in run(*words, "other", "--force").stdout
    Path("other/notes.txt").write_text("mine")
    line = fails(*words, "other", "--force")
    assert "`--out` must be a new folder, or one that regaug has written" in line
    assert "which holds something else (notes.txt)" in line
    assert Path("other/notes.txt").read_text() == "mine"


def test_the_library_keeps_the_rule_too(mine, model, write_study):
    write_study(Path("runs/houses"))
    study = Study.open("runs/houses")
    with pytest.raises(ArgumentError, match=r"`path` must end in \.html"):
        study.report("houses.csv")
    Path("mine.html").write_text("<html>")
    with pytest.raises(OverwriteError, match=r"`path` must be new.*force=True"):
        study.report("mine.html")
    study.report("mine.html", force=True)
    study.report("mine.html")  # it is regaug's own now
    ensemble = Ensemble.load(model)
    with pytest.raises(OverwriteError, match="`folder` must be a folder, got the file houses.csv"):
        ensemble.save("houses.csv", force=True)
    with pytest.raises(OverwriteError, match="which holds something else"):
        ensemble.save(".", force=True)
    ensemble.save("saved")
    ensemble.save("saved")
    Path("saved/model.json").write_text('{"format": "of somebody else"}')
    with pytest.raises(OverwriteError, match=r"`folder` must be new.*force=True"):
        ensemble.save("saved")
    ensemble.save("saved", force=True)


def test_a_study_leaves_the_users_own_files_alone(run, mine, shorten, monkeypatch):
    shorten(monkeypatch, 2)
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))
    Path("runs/houses/full-erm-trials-1-splits-1").mkdir(parents=True)
    Path("runs/houses/full-erm-trials-1-splits-1/report.html").write_text("mine")
    Path("runs/houses/latest").write_text("mine too")
    Path("runs/houses/latest.html").write_text("and mine")
    small = ("--trials", 1, "--splits", 1, "-m", "erm", "-j", 1, "--target", "price")
    result = run("compare", "houses.csv", *small)
    assert result.exit_code == 0, result.output
    folder = Path("runs/houses/full-erm-trials-1-splits-1-2")
    assert f"runs/houses/{folder.name[:-2]} holds something else." in result.stderr
    assert f"The study is kept in {folder}." in result.stderr
    assert (folder / "report.html").exists()
    assert Path("runs/houses/full-erm-trials-1-splits-1/report.html").read_text() == "mine"
    assert Path("runs/houses/latest").read_text() == "mine too"
    assert Path("runs/houses/latest.html").read_text() == "and mine"
    # A page of the user's own in the folder of a study is not replaced either.
    (folder / "report.html").write_text("mine")
    again = run("compare", "houses.csv", *small)
    assert again.exit_code == 1
    assert f"`--out` must be new, got {folder / 'report.html'}" in again.stderr
    assert (folder / "report.html").read_text() == "mine"
