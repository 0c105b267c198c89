"""What a command says is no Python: names of options, ways out that can be typed."""

import re

import pytest

from regaug.cli.wording import reword
from regaug.data.datasets.synthetic import make_manifold
from regaug.data.tabular.generation import generate
from regaug.ensemble.rows import check_table
from regaug.exceptions import RegaugError

PYTHON = re.compile(r"\w\(\.{0,3}|=\.\.\.|\bNone\b|\bregaug\.\w|pandas|\[|<class|\w=['\"\d]")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("compare diabetes --metric rsme", "`--metric` must be one of 'rmse', 'mae', 'mape'"),
        ("compare diabetes --split time", "`--split` must be left out for data that knows how"),
        ("compare diabetes --trials 0", "`--trials` must be at least 1, got 0."),
        ("compare diabetes --splits 0", "`--splits` must be at least 1, got 0."),
        ("compare diabetes --seed -1", "`--seed` must be at least 0, got -1."),
        ("compare diabetes -j 0", "`--jobs` must be at least 1, got 0."),
        ("compare diabetes --max-minutes 0", "`--max-minutes` must be greater than 0, got 0.0."),
        ("compare diabetes --executor spark", "`--executor` must be one of 'process', 'ray'"),
        ("compare diabetes --ray-address x", "`--ray-address` needs --executor ray, got 'process'"),
        (
            "compare diabetes --gpus-per-run 1",
            "`--gpus-per-run` needs --executor ray, got 'process'",
        ),
        ("compare diabetes --search grid", "`--search` must be one of 'random', 'tpe'"),
        ("compare diabetes --model tree", "Unknown model 'tree'. Did you mean 'trees'?"),
        ("compare diabetes --model lacking.py:make", "`--model`: there is no file 'lacking.py'."),
        ("compare diabetes --rows houses.csv", "`--rows` needs a regressor that learns from new "),
        ("compare diabetes --keep-integers", "got nets. Choose one: --model boosting."),
        ("compare diabetes --model ridge -m manifold-mixup", "`--methods` must make new rows for"),
        ("compare diabetes --model ridge --rows houses.csv", "`--rows` must have the targets of "),
        ("compare houses.csv -t price --split group", "Name the column: --group NAME."),
        (
            "compare houses.csv -t price --group country",
            "got 1: 'EU'. Use --split random.",
        ),
        (
            "compare houses.csv -t price -t price",
            "`--target` must name different columns, got 'price', 'price'.",
        ),
        ("compare notes.pdf -t price", "`DATA` must end in .csv"),
        ("fit diabetes --method erm --members 0 --out m", "`--members` must be from 1 to 1000"),
        ("fit diabetes --seed -1 --out m", "`--seed` must be at least 0"),
        ("augment diabetes --method erm --rows 4 -o x.csv", "`--method` must make new rows"),
        ("reproduce figure1 --seeds 0", "`--seeds` must be at least 1, got 0."),
        ("reproduce figure1 --max-minutes 0", "`--max-minutes` must be greater than 0"),
    ],
)
def test_errors_name_options_and_ways_out_that_can_be_typed(
    run, files, tmp_path, monkeypatch, words, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "houses.csv").write_bytes((files / "houses.csv").read_bytes())
    (tmp_path / "notes.pdf").write_text("a,b\n1,2\n")
    result = run(*words.split())
    assert result.exit_code in (1, 2)
    told = result.stderr.splitlines()[-1]
    assert message in told
    assert not PYTHON.search(told)
    assert not list(tmp_path.glob("runs/*/*/runs-*"))


class Image:
    """A data set that is no table."""

    info = make_manifold("sine", n=30).info


def messages():
    """What the library says where a command needs much to make it say so."""
    calls = {
        "fit": lambda: check_table(Image()),
        "augment": lambda: generate(Image(), method="mixup", rows=3),
    }
    for name, call in calls.items():
        with pytest.raises(RegaugError) as caught:
            call()
        yield name, str(caught.value)


def test_what_is_seldom_said_is_reworded_too():
    for _, message in messages():
        assert PYTHON.search(message)
        told = reword(message, {"data": "DATA"})
        assert told.startswith("`DATA` must be a table: a file of your own, or a named data set")
        assert not PYTHON.search(told)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "`interval` must be None for a model that was trained on all its rows, got 0.9. Fit "
            "one that has intervals: regaug.fit(data).",
            "`--interval` must be left out for a model that was trained on all its rows, got 0.9. "
            "Fit one that has: regaug fit.",
        ),
        (
            "`data` must be a table, got rcf-mnist, an image data set. Take "
            "Problem.named('rcf-mnist'), which has a network for it.",
            "`data` must be a table, got rcf-mnist, an image data set.",
        ),
        ("`rate` must be a number.", "`rate` must be a number."),
        ("Columns ['a', 'b']: [1, 2] stay.", "Columns 'a', 'b': [1, 2] stay."),
    ],
)
def test_words_are_found_for_python(message, told):
    assert reword(message, {"interval": "--interval"}) == told
