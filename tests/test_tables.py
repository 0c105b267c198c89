"""The tables of the README and the docs are those of the code and of what was measured."""

import json
import re
from dataclasses import fields

import pytest
from benchmarks.atlas.pooling import pool
from benchmarks.leaderboard import FILE as LEADERBOARD
from benchmarks.tables import commands, library, measured
from benchmarks.tables.pages import MARKED, PROJECT, TABLES, names_in, pages, renew
from typer.testing import CliRunner

from regaug._version import __version__
from regaug.cli import names
from regaug.cli.main import app
from regaug.data import NAMES
from regaug.problems import MOST_ROWS
from regaug.studies.checks import TITLES
from regaug.training.settings import Settings

PAGES = pages()
README = (PROJECT / "README.md").read_text()


def first_cells(lines):
    return [line.split(" | ")[0].strip("| ") for line in lines if line.startswith("| ")][2:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_the_tables_of_a_page_are_up_to_date(page):
    text = page.read_text()
    assert renew(text, page) == text, "make tables"


def test_every_table_has_its_page():
    found = [name for page in PAGES for name in names_in(page)]
    assert set(found) == set(TABLES)


def test_no_marker_is_left_alone():
    for page in PAGES:
        rest = MARKED.sub("", page.read_text())
        assert not re.search(r"<!-- [a-z -]+: (begin|end) -->", rest), page


def test_what_stands_between_markers_is_replaced_and_nothing_else():
    text = "Before.\n\n<!-- metrics: begin -->\nold\n<!-- metrics: end -->\n\nAfter.\n"
    new = renew(text, PROJECT / "docs" / "training.md")
    assert new.startswith("Before.\n\n<!-- metrics: begin -->\n\n| name |")
    assert new.endswith("|\n\n<!-- metrics: end -->\n\nAfter.\n")
    assert "\nold\n" not in new
    assert renew(new, PROJECT / "docs" / "training.md") == new


def test_links_lead_from_the_page_that_they_stand_on():
    text = "<!-- checks: begin -->\n<!-- checks: end -->"
    for page, link in {
        "README.md": "(docs/checks.md#r5-few-splits)",
        "docs/study.md": "(checks.md#r5-few-splits)",
        "docs/methods/index.md": "(../checks.md#r5-few-splits)",
    }.items():
        assert link in renew(text, PROJECT / page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_links_of_tables_lead_to_files(page):
    for found in MARKED.finditer(page.read_text()):
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", found[0]):
            assert link.startswith("https://") or (page.parent / link).exists(), link


def test_every_data_set_metric_setting_and_check_has_a_row():
    listed = ", ".join(first_cells(library.make_datasets()))
    assert re.findall(r"`(.+?)`", listed) == list(NAMES)
    assert first_cells(library.make_metrics()) == [f"`{name}`" for name in names.METRICS]
    assert first_cells(library.make_settings()) == [f"`{own.name}`" for own in fields(Settings)]
    for code, cell in zip(TITLES, first_cells(library.make_checks()), strict=True):
        assert cell.startswith(f"[{code}](")


def test_no_cell_of_a_description_is_empty():
    for line in library.make_settings()[2:-1]:
        assert not line.endswith("|  |"), line
    assert ":class:" not in str(library.make_settings())
    assert "``" not in str(library.make_settings())


@pytest.mark.parametrize("name", commands.makers())
def test_the_options_of_a_command_are_those_of_its_help(name):
    shown = CliRunner().invoke(app, [*name.split(), "--help"]).stdout
    own = set(re.findall(r"(?<![\w-])--[a-z-]+", shown)) - {"--help", "--install-completion"}
    listed = set(re.findall(r"`(--[a-z-]+)", "\n".join(first_cells(commands.make_options(name)))))
    assert listed <= own
    assert {option for option in own if f"{option} " in shown} >= listed
    page = (PROJECT / "docs" / "commands.md").read_text()
    assert f"\n## regaug {name}\n" in page


def test_the_defaults_of_options_are_said_once():
    lines = {line.split("`")[1].split()[0]: line for line in commands.make_options("compare")[2:-1]}
    assert lines["--seed"].endswith("[0] |")
    assert lines["--trials"].count("[") == 1
    assert "False" not in str(lines)


def test_the_study_of_the_readme_is_the_demo():
    kept = json.loads(LEADERBOARD.read_text())
    demo = re.search(r"^demo:.*\n\t(.+)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert demo[1].endswith(kept["command"])
    assert kept["command"] in README
    assert len(first_cells(measured.make_leaderboard())) == len(kept["leaderboard"])


def test_the_worth_of_a_fit_is_what_the_atlas_says():
    atlas, said = measured.ATLAS.read_text(), " ".join(measured.make_worth_of_fit())
    (row,) = [line for line in atlas.splitlines() if line.startswith("| `fit`: the blend |")]
    mean, median = (float(row.split(" | ")[place]) for place in (1, 3))
    assert f"error is {mean:.2f} of" in said
    assert f"the median is {median:.2f}." in said


def test_the_worth_of_methods_is_what_the_field_says():
    def known(factor):
        errors = [{"erm": [1.0, 2.0], "ada": [factor + n / 1e4, 2.0 * factor]} for n in range(9)]
        return [{"table": f"t{n}", "errors": own} for n, own in enumerate(errors)]

    for factor, words in {
        0.9: "can be told from: lower errors with ada.",
        1.1: "can be told from: higher ones with ada.",
    }.items():
        lines = known(factor)
        (said, _) = measured._worth_of_methods(lines, pool(lines, ["ada"], "erm"))
        assert said.startswith("On the 9 real tables of")
        assert said.endswith(words)
    assert "no method can be told" in measured._worth_of_methods([], [])[0]


def test_the_steps_of_a_study_are_measured_against_its_ensemble_of_plain_training():
    lines = [line for line in measured.make_worth_of_steps() if "ensemble of plain" in line]
    assert lines == ["| ensemble of plain training | +0.0 % | +0.0 to +0.0 |"]


def test_what_the_advice_rests_on_is_what_was_measured():
    field = (PROJECT / "docs" / "field.md").read_text()
    mend = "docs/which_method.md and the README say otherwise"
    told = "over all tables: lower errors with none, higher ones with none."
    assert field.count(f"Told from no new rows {told}") == 2, mend
    assert field.count(f"Told from `repeats` {told}") == 1, mend
    assert "No method can be told from plain training in any half of the tables" in field, mend
    assert "By none of 6 traits does the change of a method differ" in field, mend
    firsts = re.findall(r"^\| ([a-z-]+) \| \S+ % \| \S+ to", field, re.MULTILINE)[:3]
    page = (PROJECT / "docs" / "which_method.md").read_text()
    assert set(re.findall(r"one augmentation only \| (.+?),? with", page)[0].split("`")) >= {
        *firsts
    }
    models = first_cells(measured.make_worth_of_models())
    assert models[0] == "`fit`: the blend", mend
    assert models.index("`fit --method gp`") < models.index("`fit --method boosting`"), mend
    assert first_cells(measured.make_worth_of_recipes()) == list(measured.INGREDIENTS)


def test_the_readme_says_how_many_rows_a_study_looks_at():
    assert f"a study looks at {MOST_ROWS:,} of them" in README


def test_the_first_code_of_the_readme_has_fifteen_lines():
    first = re.search(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)[1]
    assert len([line for line in first.splitlines() if line.strip()]) == 15


def test_the_readme_cites_the_version_that_this_is():
    assert f"version = {{{__version__}}}" in README
