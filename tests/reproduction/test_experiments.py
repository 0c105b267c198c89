"""An experiment from the data to its table: what is done, kept, told, and not done twice."""

import pytest

from regaug.exceptions import DataNotFoundError, OverwriteError, UnknownNameError
from regaug.reproduction import tables
from regaug.reproduction.experiments import Wanted, run_experiment
from regaug.reproduction.figures import make_figure
from regaug.reproduction.page import read_table
from regaug.reproduction.problems import PaperData, make_table_net
from regaug.runs.store import Store
from regaug.runs.tasks import Workforce


def run(folder, told=None, minutes=0.05, **changes):
    wanted = Wanted(**{"datasets": ["airfoil"], "methods": ["foma"], "seeds": 1} | changes)
    workforce = Workforce(max_minutes=minutes)
    progress = None if told is None else told.append
    return run_experiment("batches", folder, wanted, workforce=workforce, progress=progress)


def test_a_table_is_measured_kept_and_not_done_twice(made_up, tmp_path):
    told = []
    (found,) = run(tmp_path / "store", told)
    assert [line.label for line in found.paper] == ["foma, random batches", "foma, nearest batches"]
    assert found.command == (
        "regaug reproduce batches --datasets airfoil --methods foma --seeds 1 --max-minutes 0.05 "
        "-j 1"
    )
    assert read_table(tmp_path / "store" / "tables" / "batches-airfoil.json") == found
    assert (told[0].planned, told[0].left, len(told[0].records)) == (2, 2, 0)
    assert sum(len(progress.records) for progress in told) == 2
    records = Store.open(tmp_path / "store").records()
    assert set(found.keys) == set(records)
    told.clear()
    assert run(tmp_path / "store", told) == [found]
    assert [(progress.planned, progress.left) for progress in told] == [(2, 0)]


def test_data_that_is_not_here_is_named(made_up, tmp_path):
    told = []
    run(tmp_path / "store", told, datasets=["airfoil", "no2"])
    assert [note[:38] for note in told[0].notes] == ["Left out: no2 is not on this disk. To "]
    with pytest.raises(DataNotFoundError, match="no2 is not on this disk. To get it"):
        run(tmp_path / "new", datasets=["no2"])
    assert not (tmp_path / "new").exists()


def test_what_is_done_and_left_is_said(made_up, tmp_path):
    (found,) = run(tmp_path / "store")
    assert found.left.startswith("airfoil: all 2 runs are done, cut to at most ")
    assert found.left.endswith(" in the paper's protocol to fit 0.05 min. " + whole_of(found))
    (again,) = run(tmp_path / "store", methods=["foma", "foma-rho"], minutes=1e-9)
    assert again.left.startswith("airfoil: 0 of 4 runs are done, cut to at most 1 epoch ")
    assert "Run the same command again to go on (about " in again.left


def whole_of(found):
    return found.left[found.left.index("For the whole, add --whole, without --epochs (about ") :]


def test_a_folder_of_somebody_else_is_left_alone(made_up, tmp_path):
    (tmp_path / "store" / "tables").mkdir(parents=True)
    mine = tmp_path / "store" / "tables" / "batches-airfoil.json"
    mine.write_text("mine")
    with pytest.raises(OverwriteError, match="`out` must not hold other things, got .*store"):
        run(tmp_path / "store")
    with pytest.raises(OverwriteError):
        make_figure("figure1", tmp_path / "store")
    assert mine.read_text() == "mine"
    make_figure("figure1", tmp_path / "new")
    make_figure("figure1", tmp_path / "new")  # regaug's own
    run(tmp_path / "new")


def test_an_unknown_method_is_refused_before_anything_is_made(made_up, tmp_path):
    with pytest.raises(UnknownNameError, match="Unknown method 'fooma'"):
        run(tmp_path / "store", methods=["fooma"])
    assert not (tmp_path / "store").exists()


def test_the_whole_is_not_cut_but_left_for_another_time(made_up, tmp_path):
    (found,) = run(tmp_path / "store", minutes=1e-9, whole=True)
    assert found.left.startswith("airfoil: 0 of 2 runs are done. Run the same command again to go")
    assert [(line.epochs, line.of_epochs) for line in found.paper] == [(200, 200)] * 2
    assert found.command.endswith("--seeds 1 --whole")
    (short,) = run(tmp_path / "other", minutes=None, whole=True, epochs=2)
    assert short.left.startswith("airfoil: all 2 runs are done, cut to at most 2 epochs in the")
    assert short.command.endswith("--seeds 1 --epochs 2 --whole")
    assert short.paper[0].words == "foma, random batches, 2 of 200 epochs"
    assert short.paper[0].cut.batches == 2 * (1003 // 32)


def test_a_network_pauses_when_the_time_is_up_and_goes_on(made_up, tmp_path, monkeypatch):
    # The net for tables as one that is no stack, as that of a series.
    data = PaperData("airfoil", "airfoil", model=make_table_net)
    monkeypatch.setattr(tables, "find_data", lambda *_: ([data], []))
    wanted = {"whole": True, "epochs": 3}
    (first,) = run(tmp_path / "store", minutes=1e-4, **wanted)
    assert first.paper[0].done == 0
    (second,) = run(tmp_path / "store", minutes=None, **wanted)
    assert [(line.done, line.epochs) for line in second.paper] == [(1, 3)] * 2
    (whole,) = run(tmp_path / "other", minutes=None, **wanted)
    assert [own.figures for own in whole.paper] == [own.figures for own in second.paper]
