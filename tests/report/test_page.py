"""The page: whole, valid, safe, and the same for the same study."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from regaug.data.datasets.synthetic import make_manifold
from regaug.exceptions import RegaugError
from regaug.report import write_report
from regaug.report.page import render
from regaug.runs.record import Sample
from regaug.studies.facts import describe

HOSTILE = "<script>alert('x')</script>\x00\x0b\ud800&amp;\"'"
VOID = {"meta", "link", "br"}


class Reader(HTMLParser):
    """Reads a page and keeps its tags, ids, references and text; unbalanced tags are an error."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.ids, self.references, self.levels = [], [], [], [], []
        self.addresses, self.text = [], ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        if re.fullmatch(r"h\d", tag):
            self.levels.append(int(tag[1]))
        if "id" in values:
            self.ids.append(values["id"])
        self.references += values.get("aria-labelledby", "").split()
        self.addresses += [values[name] for name in ("href", "src") if name in values]
        assert not any(name.startswith("on") for name in values)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def facts():
    return describe(make_manifold("sine", n=200).split(), f"one column\n{HOSTILE}")


def test_the_page_is_balanced_and_its_references_exist(make_study, facts):
    page = Reader(render(make_study(groups=["a", "b"], facts=facts)))
    assert len(page.ids) == len(set(page.ids))
    assert set(page.references) <= set(page.ids)
    local = [address[1:] for address in page.addresses if address.startswith("#")]
    assert len(local) == 11  # ten sections and the way past the contents
    assert set(local) <= set(page.ids)
    assert page.levels[0] == 1
    assert page.levels.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(page.levels, page.levels[1:], strict=False))


def test_the_page_needs_nothing_from_outside(make_study, facts):
    text = render(make_study(facts=facts))
    page = Reader(text)
    assert all(address.startswith(("#", "data:")) for address in page.addresses)
    assert "script" not in page.tags
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text
    assert len(text.encode()) < 300_000


def test_the_verdict_comes_first_and_whole(make_study):
    study = make_study()
    text = " ".join(Reader(render(study)).text.split())
    for sentence in study.verdict.text.replace(". ", "; ").split("; "):
        assert sentence in text
    assert text.index("c-mixup lowers RMSE") < text.index("Leaderboard")


def test_the_table_has_a_row_for_every_method(make_study):
    study = make_study()
    table = re.search(r'<table id="table-leaderboard">.*?</table>', render(study), re.DOTALL)[0]
    names = re.findall(r'<th scope="row">([\w-]+)', table)
    assert names == [row.name for row in study.comparison.rows]
    assert table.count('class="baseline"') == 3
    assert table.count("<small>baseline: ") == 3
    assert table.count('class="best"') == 1
    tiers = re.findall(r'</th>\s*<td class="wide">(\d*)</td>', table)
    assert tiers == [str(row.tier) for row in study.comparison.rows]


def test_what_is_combined_is_marked_and_so_is_what_to_use(make_study):
    study = make_study(combined=True)
    page = render(study)
    table = re.search(r'<table id="table-leaderboard">.*?</table>', page, re.DOTALL)[0]
    assert table.count('class="combined"') == 2
    assert "combined: the blend of nets and baselines" in table
    assert (table.count("use this"), table.count("recommended net")) == (1, 1)
    assert study.verdict.use == "auto"
    assert re.search(r"<dt>Use</dt><dd>auto</dd>", page)


def test_other_metrics_and_times_have_a_table_of_their_own(make_study):
    page = render(make_study(combined=True))
    table = re.search(r'<table id="table-details">.*?</table>', page, re.DOTALL)[0]
    header = re.findall(r'<th scope="col">([^<]+)', table)
    assert header == [
        "Method",
        "MAE",
        "R2",
        "Pearson&#39;s R",
        "RMSE of a single net",
        "Fit",
        "Epochs",
        "Predict a row",
    ]
    assert "12 s" in table
    assert "4.0 µs" in table
    assert "Predict a row" not in render(make_study())
    without = render(replace(make_study(), details={}))
    assert "table-details" not in without


def test_the_table_of_pairs_has_a_cell_for_any_two_rows(make_study):
    study = make_study(combined=True)
    table = re.search(r'<table id="table-pairs".*?</table>', render(study), re.DOTALL)[0]
    rows = len(study.comparison.rows)
    assert table.count("<td") == rows**2
    assert table.count("<small>won ") == rows * (rows - 1)
    sure = sum(pair.is_significant for pair in study.comparison.pairs)
    assert table.count(" sure") == 2 * sure > 0


def test_the_checks_are_told_with_their_place_in_the_docs(make_study):
    study = make_study(splits=3)
    assert [check.code for check in study.checks] == ["R5"]
    text = " ".join(Reader(render(study)).text.split())
    assert "R5: few splits. The study has 3 splits" in text
    assert "docs/checks.md#r5-few-splits" in text
    assert text.index("R5") < text.index("All rows, the best mean first")
    assert 'id="checks"' not in render(make_study())


def test_the_steps_are_on_the_page_where_they_are_known(make_study):
    assert 'id="plot-steps"' in render(make_study(combined=True))
    assert 'href="#steps"' not in render(make_study())


def test_every_plot_has_a_figure_with_a_caption(make_study, facts):
    page = render(make_study(groups=["a", "b"], facts=facts))
    assert page.count("<figure") == page.count("<figcaption>") == page.count('role="img"') == 9


def test_names_of_the_user_are_escaped(make_study, facts):
    text = render(make_study(name=HOSTILE, groups=["a", HOSTILE], facts=facts))
    page = Reader(text)
    assert "script" not in page.tags
    assert page.text.count("<script>alert('x')</script>") >= 4
    text.encode("utf-8")  # without a character that no file can hold


def test_without_facts_the_page_says_what_is_left_out(make_study, facts):
    study = make_study()
    without, whole = Reader(render(study)).text, Reader(render(make_study(facts=facts))).text
    assert without.count("about.json") == 2
    assert "about.json" not in whole
    assert "one column" in whole


def test_a_study_under_way_says_so(make_study):
    text = Reader(render(make_study(trials=5, finished=2))).text
    assert "not complete: 2 of 5 settings" in text
    assert "not complete" not in Reader(render(make_study())).text


@pytest.mark.parametrize("kind", ["infinite", "raised"])
def test_a_study_in_which_every_net_failed_still_has_a_page(make_study, kind):
    def fail(record):
        if record.run.is_baseline:
            return record
        if kind == "raised":
            return replace(record, scores={}, curves={}, sample=Sample(), best_epoch=0)
        scores = {part: replace(own, rmse=math.inf) for part, own in record.scores.items()}
        nothing = {"train": [], "test": [], "validation": [], "loss": []}
        return replace(record, scores=scores, curves=nothing, best_epoch=0)

    text = " ".join(Reader(render(make_study(change=fail))).text.split())
    assert "failed on 6 of 6 splits" in text
    assert "gave no finite RMSE" in text


def test_runs_on_the_log_scale_are_counted(make_study):
    def take_logs(record):
        run = record.run
        return replace(record, run=replace(run, log=True)) if run.method == "erm" else record

    text = Reader(render(make_study(change=take_logs))).text
    assert "6 of the 24 chosen runs fit the target's logarithm" in text
    assert "logarithm" not in Reader(render(make_study())).text


def test_without_groups_there_is_no_section_on_them(make_study):
    assert "worst-group" not in render(make_study())
    assert 'id="worst-group"' in render(make_study(groups=["a", "b"]))


@pytest.mark.parametrize("metric", ["rmse", "mae", "r2", "pearson"])
@pytest.mark.parametrize("splits", [1, 3])
def test_every_metric_and_a_single_split_make_a_page(make_study, metric, splits):
    Reader(render(make_study(metric=metric, splits=splits, methods=["erm", "mixup"])))


def test_the_same_study_gives_the_same_page(make_study, facts):
    assert render(make_study(facts=facts)) == render(make_study(facts=facts))


def test_a_report_replaces_the_old_one_and_leaves_nothing_else(make_study, tmp_path):
    path = tmp_path / "new" / "report.html"
    assert write_report(make_study(), path) == path
    path.write_text(path.read_text(encoding="utf-8") + "old", encoding="utf-8")
    write_report(make_study(), path)
    assert path.read_text(encoding="utf-8") == render(make_study())
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written_is_told(make_study, tmp_path):
    (tmp_path / "report.html").mkdir()
    with pytest.raises(RegaugError, match="report.html"):
        write_report(make_study(), tmp_path / "report.html")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_network_of_ones_own_is_not_called_one_for_tables(make_study):
    page = render(make_study(hidden=()))
    text = " ".join(Reader(page).text.split())
    assert "the problem's own; at most 200 epochs" in text
    assert "fully connected" not in text
    assert 'id="command"' not in page
    assert 'id="command"' in render(make_study(combined=True))


def test_it_says_what_was_tried_and_what_is_compared(make_study):
    study = make_study()
    single = render(study)
    assert "each split chooses by its own validation error" in single
    assert "<dt>Recipes</dt>" not in single
    config = replace(study.config, recipes=16)
    scores = {**study.scores, "nets": study.scores["erm"]}
    page = render(replace(study, config=config, scores=scores))
    assert "<dt>Recipes</dt><dd>16 on every split, with plain training</dd>" in page
    assert "the test error of the ensemble of a method" in page
    runs = (len(study.config.methods) * study.trials + 16) * study.config.splits
    assert f"{runs:,} trainings" in page
    assert "at most 200 epochs" in page
