"""What the documentation is built with, docs/_ext: each part alone."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="needs the extra: pip install 'regaug[docs]'")
pytest.importorskip("myst_parser", reason="needs the extra: pip install 'regaug[docs]'")

sys.path.append(str(Path(__file__).resolve().parents[2] / "docs" / "_ext"))
import api_page
import demo_report
import navigation
import notebooks
import reading_aids
import references

import regaug


def test_every_public_name_is_on_one_page_of_the_api():
    names = [name for group in api_page.documented().values() for name in group]
    assert len(names) == len(set(names))
    for name in set(regaug.__all__):
        value = getattr(regaug, name)
        modules = " ".join(group.modules for group in api_page.GROUPS.values()).split()
        assert f"regaug.{name}" in names or value.__name__ in modules, name


def test_an_object_has_one_page_under_its_shortest_name():
    assert references.page_of("regaug.augment.foma.FOMA") == "regaug.FOMA"
    assert references.page_of("regaug.studies.study.Study.report") == "regaug.Study.report"
    assert references.page_of("torch.Tensor") == ""  # it exists, and has no page here
    assert references.page_of("regaug.augment.foma.FOMMA") is None
    assert references.page_of("regaug.FOMA.no_such_thing") is None


def test_pages_that_are_not_there_are_left_out_and_others_come_once():
    found = {"index", "guide", "data", "compare", "notebooks/a", "study", "start"}
    assert navigation.pages_under("guide", found) == ["compare", "data", "notebooks/a"]
    assert navigation.pages_under("index", found) == ["start", "guide", "study"]
    assert navigation.pages_under("results", found) == []


def test_pages_stand_elsewhere_until_their_own_place_is_written():
    assert navigation.pages_under("guide", {"guide", "checks"}) == ["checks"]
    assert navigation.pages_under("guide", {"guide", "study", "checks"}) == []


def test_a_card_leads_to_its_page():
    cards = navigation.write_cards("results", {"results", "atlas"})
    assert ":link: /atlas" in cards
    assert ":link: /field" not in cards


def test_a_notebook_is_shown_with_what_it_printed_and_drew():
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Text."]},
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                {"output_type": "display_data", "data": {"image/png": "aGk=\n"}, "metadata": {}},
                {"output_type": "error", "ename": "ValueError", "evalue": "no"},
            ],
        },
        {"cell_type": "code", "source": "x", "outputs": []},
    ]
    text = notebooks.to_markdown({"cells": cells})
    assert text.startswith("# Title\nText.\n\n")
    for part in ("print(1)", "{code-block} text\n1\n", "base64,aGk=", "ValueError: no", 'alt="'):
        assert part in text


def test_lines_of_a_signature_are_no_definitions():
    body = "<dl>\n<dd>a,</dd>\n<dd>b,</dd>\n</dl><dl><dt>x</dt><dd>y</dd></dl>"
    lines = '<div class="sig-lines">\n<div>a,</div>\n<div>b,</div>\n</div>'
    assert reading_aids.name_lines(body) == f"{lines}<dl><dt>x</dt><dd>y</dd></dl>"


def test_the_link_of_a_thumbnail_says_where_it_leads():
    link = '<a class="reference internal" href="plot_1.html"><span class="doc">A curve</span></a>'
    assert 'plot_1.html" aria-label="A curve"><span' in reading_aids.name_thumbnails(link)


def test_an_arrow_of_the_sidebar_says_what_it_opens():
    sidebar = '<a href="x">A <code>b</code></a><details><summary><span></span></summary></details>'
    assert '<summary aria-label="Pages under A b">' in reading_aids.name_arrows(sidebar)


def test_the_report_is_made_again_when_the_library_has_changed(tmp_path, monkeypatch):
    made = []

    def run(command, **_):
        made.append(command)
        folder = Path(command[-1]) / "diabetes" / "quick"
        folder.mkdir(parents=True)
        (folder / "report.html").write_text(str(len(made)))
        return type("Done", (), {"returncode": 0, "stdout": "", "stderr": ""})

    monkeypatch.setattr(demo_report.subprocess, "run", run)
    source = tmp_path / "regaug"
    source.mkdir()
    (source / "a.py").write_text("one")
    for expected, text in (("1", "one"), ("1", "one"), ("2", "two")):
        (source / "a.py").write_text(text)
        report = demo_report.make_report(source, tmp_path / "kept")
        assert report.read_text() == expected
