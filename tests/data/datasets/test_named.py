"""Data sets by name."""

from importlib import import_module
from pathlib import Path

import pytest

from regaug.data.base import Data, Info
from regaug.data.datasets import files
from regaug.data.datasets.facts import DATASETS
from regaug.data.datasets.named import NAMES, fetch, how, info, is_here, load, where
from regaug.data.datasets.synthetic import KINDS
from regaug.exceptions import DataNotFoundError, UnknownNameError

FILELESS = [name for name in NAMES if not DATASETS[name].needs]


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine without data of its own and without a network."""

    def no_network(address, target, *, checks, limit):
        raise DataNotFoundError(f"Could not fetch {address}: no network.")

    monkeypatch.setenv("REGAUG_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("REGAUG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "download", no_network)
    return tmp_path


def test_the_paper_and_its_stand_ins_are_all_there():
    assert {name for name in NAMES if not name.startswith("synthetic-")} == {
        *("diabetes", "airfoil", "no2", "crimes", "skillcraft", "exchange-rate", "electricity"),
        *("etth1", "rcf-mnist", "povertymap", "dti", "davis", "kiba", "echo"),
    }


def test_the_page_on_data_says_whose_every_data_set_is():
    page = (Path(__file__).parents[3] / "docs/data.md").read_text()
    not_generated = [name for name in NAMES if not name.startswith("synthetic-")]
    for facts in map(info, not_generated):
        start = f"| `{facts.name}` | {facts.license} |"
        (row,) = (line for line in page.splitlines() if line.startswith(start))
        assert facts.citation in row
        assert facts.origin in row


def test_every_kind_of_manifold_has_a_name():
    names = {name.removeprefix("synthetic-") for name in NAMES if name.startswith("synthetic-")}
    assert names == set(KINDS)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_facts_a_loader_and_a_way_to_get_it(name):
    facts = info(name)
    assert isinstance(facts, Info)
    assert facts.name == name
    assert facts.split
    assert facts.origin
    assert how(name)
    module, _, function = DATASETS[name].loader.partition(":")
    assert callable(getattr(import_module(f"regaug.data.datasets.{module}"), function))
    for needed in DATASETS[name].needs:
        assert needed in files.FOLDERS or any(
            known == needed or known.startswith(needed + "/") for known in files.FILES
        )


@pytest.mark.parametrize("name", [name for name in NAMES if DATASETS[name].needs])
def test_a_loader_asks_for_what_its_entry_says(name, monkeypatch):
    class AskedError(Exception):
        pass

    def ask(relative):
        raise AskedError(relative)

    for module in ("tables", "series", "files"):
        monkeypatch.setattr(import_module(f"regaug.data.datasets.{module}"), "locate", ask)
    if name == "echo":
        pytest.importorskip("av")
    with pytest.raises(AskedError) as asked:
        load(name)
    assert asked.value.args == DATASETS[name].needs


@pytest.mark.parametrize("name", FILELESS)
def test_those_without_files_are_always_here(nowhere, name):
    assert is_here(name)
    assert where(name) is None
    assert fetch(name) == []
    data = load(name)
    assert isinstance(data, Data)
    assert len(data) > 0
    assert data.info.name == name


@pytest.mark.parametrize(
    "name", ["airfoil", "no2", "crimes", "skillcraft", "exchange-rate", "etth1", "davis"]
)
def test_what_is_loaded_has_the_facts_that_were_told(real_data, monkeypatch, name):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    assert is_here(name)
    assert where(name) == real_data / DATASETS[name].needs[0]
    assert fetch(name) == [where(name)]
    loaded, told = load(name).info, info(name)
    assert (loaded.name, loaded.task, loaded.metric) == (told.name, told.task, told.metric)
    assert (loaded.groups, loaded.license) == (told.groups, told.license)


def test_without_files_and_network_the_way_by_hand_is_told(nowhere):
    for name in ("airfoil", "povertymap", "echo", "dti", "skillcraft", "davis"):
        assert where(name) is None
        assert not is_here(name)
        with pytest.raises(DataNotFoundError, match="Put it at .* and set REGAUG_DATA"):
            fetch(name)
    with pytest.raises(DataNotFoundError, match="no network"):
        load("airfoil")


def test_agreements_and_sizes_are_told_beforehand():
    assert "agreement" in how("echo")
    assert "13 GB" in how("povertymap")
    assert "dataset-fashion-mnist" in how("rcf-mnist")
    assert how("airfoil") == "regaug data fetch airfoil"


def test_options_reach_the_loader():
    assert len(load("synthetic-swiss-roll", n=50, noise=0.1, seed=3)) == 50


@pytest.mark.parametrize("ask", [load, info, where, is_here, fetch, how])
def test_a_misspelled_name_is_met_with_the_right_one(ask):
    with pytest.raises(
        UnknownNameError, match="Unknown data set 'airfoyl'. Did you mean 'airfoil'"
    ):
        ask("airfoyl")


def test_an_unknown_option_is_met_with_the_right_one():
    with pytest.raises(UnknownNameError, match="option of synthetic-sine 'noize'. Did you mean"):
        load("synthetic-sine", noize=1.0)
    with pytest.raises(UnknownNameError, match="'kind'"):
        load("synthetic-sine", kind="line")


def test_a_listing_imports_no_loader(fresh):
    modules = {named.loader.partition(":")[0] for named in DATASETS.values()}
    code = (
        "import sys; from regaug.data.datasets import named\n"
        "for name in named.NAMES: named.where(name), named.how(name)\n"
        "print(*sys.modules)"
    )
    imported = set(fresh(code).split())
    assert not imported & {f"regaug.data.datasets.{module}" for module in modules}
    assert not imported & {"pandas", "pyarrow", "requests", "rich", "av", "PIL", "matplotlib"}
