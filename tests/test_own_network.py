"""The four studies of docs/own_network.md run as they are written, with few rows and epochs."""

import inspect
import re
from dataclasses import replace
from pathlib import Path

import pytest

import regaug
from regaug.data.datasets.named import is_here

PAGE = Path(__file__).resolve().parents[1] / "docs" / "own_network.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
NAMES = ("images", "series", "pairs", "lightning")
CODE = dict(zip(NAMES, BLOCKS, strict=True))
# What each needs on the machine, and the method that is tried: at a layer where there are codes.
NEEDED = {"images": "rcf-mnist", "series": "etth1", "pairs": "davis"}
METHODS = {"pairs": "manifold-mixup"}
ROWS = 60


def shortened(block, find):
    """Return ``regaug.compare`` with few rows, one epoch and one method."""

    def compare(problem, *, max_minutes=None, jobs=1, trials=1):
        if problem.kind == "lightning":
            problem = problem.with_epochs(1)
        else:
            few = [split.subsample(ROWS) for split in problem.splits[:2]]
            problem = replace(problem, splits=few)
        options = {"methods": [METHODS.get(block, "mixup")], "trials": 1}
        if "epochs" in inspect.signature(find).parameters:
            options["epochs"] = 1
        studies.append(find(problem, **options))
        return studies[-1]

    studies = []
    return compare, studies


@pytest.mark.parametrize("block", NAMES)
def test_the_study_runs(block, monkeypatch, shorten, capsys, request):
    if block in NEEDED:
        monkeypatch.setenv("REGAUG_DATA", str(request.getfixturevalue("real_data")))
        if not is_here(NEEDED[block]):
            pytest.skip(f"needs the files of {NEEDED[block]}")
    if block == "lightning":
        pytest.importorskip("lightning")
    shorten(monkeypatch, 1)
    # Those that are hard to beat take most of the time, on images.
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))
    compare, studies = shortened(block, regaug.compare)
    monkeypatch.setattr(regaug, "compare", compare)
    exec(compile(CODE[block], str(PAGE), "exec"), {"__name__": "__main__"})
    (study,) = studies
    assert study.verdict.text
    assert study.config.methods == ("erm", METHODS.get(block, "mixup"))
    assert str(study).strip() == capsys.readouterr().out.strip()


@pytest.mark.parametrize("block", NAMES)
def test_it_is_at_most_forty_lines(block):
    assert len([line for line in CODE[block].splitlines() if line.strip()]) <= 40


def test_the_example_is_the_one_of_the_page():
    example = (PAGE.parents[1] / "examples" / "lightning_study.py").read_text()
    start = "class Regressor"
    shown = CODE["lightning"]
    assert shown[shown.index(start) : shown.index("if __name__")] in example
    assert len([line for line in example.splitlines() if line.strip()]) <= 30
