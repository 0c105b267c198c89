"""The newest study of a table: ``latest`` leads to it, with links and without."""

import os

import pytest

from regaug import _files
from regaug.exceptions import StoreError
from regaug.runs.store import Store
from regaug.studies.latest import find_study, mark_latest


def make_study(folder, problem="houses", seconds=0):
    Store(folder, {"problem": problem})
    (folder / "report.html").write_text("a report")
    os.utime(folder / "report.html", (1000 + seconds, 1000 + seconds))
    return folder


@pytest.fixture(params=[True, False], ids=["links", "no links"])
def links(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(_files.Path, "symlink_to", refuse)
    return request.param


def refuse(*arguments, **options):
    raise OSError(1314, "A required privilege is not held by the client")


def test_latest_leads_to_the_newest_report(tmp_path, links):
    quick, full = (make_study(tmp_path / name) for name in ("quick", "full"))
    for study in (quick, full, quick, quick):
        marked = mark_latest(study)
        assert find_study(tmp_path) == study
        if links:
            assert marked == tmp_path / "latest"
            assert (marked / "report.html").samefile(study / "report.html")
            assert find_study(marked) == study
        else:
            assert marked == tmp_path / "latest.html"
            assert f"url={study.name}/report.html" in marked.read_text()
            assert f'href="{study.name}/report.html"' in marked.read_text()
    assert len(list(tmp_path.iterdir())) == 3


def test_a_page_goes_when_links_come(tmp_path, monkeypatch):
    quick, full = (make_study(tmp_path / name) for name in ("quick", "full"))
    with monkeypatch.context() as patch:
        patch.setattr(_files.Path, "symlink_to", refuse)
        mark_latest(quick)
    mark_latest(full)
    assert find_study(tmp_path) == full
    assert not (tmp_path / "latest.html").exists()


def test_what_somebody_else_has_called_so_is_left_alone(tmp_path):
    study, elsewhere = make_study(tmp_path / "runs" / "full"), make_study(tmp_path / "elsewhere")
    latest = study.with_name("latest")
    latest.symlink_to(elsewhere)
    study.with_name("latest.html").write_text("mine")
    assert mark_latest(study) is None
    assert latest.resolve() == elsewhere
    assert find_study(study.parent) == study


def test_without_a_mark_the_time_of_the_report_decides(tmp_path):
    make_study(tmp_path / "a", seconds=5)
    newest = make_study(tmp_path / "b", seconds=9)
    make_study(tmp_path / "c", seconds=2)
    assert find_study(tmp_path) == newest
    (tmp_path / "latest").symlink_to("gone")
    assert find_study(tmp_path) == newest


def test_a_study_is_itself_and_a_folder_of_one_table_is_that_table(tmp_path, monkeypatch):
    study = make_study(tmp_path / "runs" / "houses" / "full")
    for folder in (study, study.parent, tmp_path / "runs"):
        assert find_study(folder) == study
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_study("~/runs") == study
    make_study(tmp_path / "runs" / "flats" / "full", "flats")
    with pytest.raises(StoreError, match=r"several tables in .*: name one of .*flats, .*houses\."):
        find_study(tmp_path / "runs")


def test_studies_of_several_problems_in_one_folder_must_be_named(tmp_path):
    make_study(tmp_path / "houses")
    make_study(tmp_path / "flats", "flats")
    with pytest.raises(StoreError, match="several studies in .*: name one of .*flats, .*houses"):
        find_study(tmp_path)


def test_a_folder_without_a_study_is_told(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StoreError, match="There is no study in .* Name the folder"):
            find_study(folder)
