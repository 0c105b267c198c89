"""Where a file is looked for, what is known of it, and what is said when it is nowhere."""

import hashlib
import re
from pathlib import Path

import pytest

from regaug.data.datasets import files
from regaug.data.datasets.download import digest
from regaug.data.datasets.facts import FILES, FOLDERS, File
from regaug.data.datasets.files import by_hand, cache_folder, locate
from regaug.exceptions import DataError, DataNotFoundError

AIRFOIL = "airfoil/airfoil_self_noise.dat"
FASHION = "fashion_mnist/train-images-idx3-ubyte.gz"


@pytest.fixture
def own(tmp_path, monkeypatch) -> Path:
    """The user's folder; the cache is beside it and nothing is found or fetched elsewhere."""
    monkeypatch.setenv("REGAUG_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("REGAUG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "download", no_network)
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


@pytest.fixture
def cache(own) -> Path:
    return own.parent / "cache"


def no_network(address, target, *, checks, limit):
    raise DataNotFoundError(f"Could not fetch {address}: no network.")


def pretend_download(address, target, *, checks, limit):
    return put(target, address)


def put(path: Path, text: str = "something") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_users_folder_comes_before_the_cache(own, cache):
    cached = put(cache / AIRFOIL)
    assert locate(AIRFOIL) == cached
    mine = put(own / AIRFOIL)
    assert locate(AIRFOIL) == mine


def test_the_cache_comes_before_a_download(cache, monkeypatch):
    cached = put(cache / AIRFOIL)
    monkeypatch.setattr(files, "download", pretend_download)
    assert locate(AIRFOIL).read_text() == cached.read_text() == "something"


def test_a_missing_file_is_fetched_into_the_cache_with_its_own_checks(cache, monkeypatch):
    calls = []

    def record(address, target, *, checks, limit):
        calls.append((address, target, dict(checks), limit))
        return put(target)

    monkeypatch.setattr(files, "download", record)
    assert locate(AIRFOIL) == cache / AIRFOIL
    file = FILES[AIRFOIL]
    assert calls == [(file.address, cache / AIRFOIL, file.checks, file.size)]
    assert locate(AIRFOIL, fetch=False) == cache / AIRFOIL


def test_a_file_of_the_system_comes_after_the_cache_and_before_a_download(
    own, cache, tmp_path, monkeypatch
):
    file = FILES[FASHION]
    packaged = put(tmp_path / "usr" / "images.gz")
    moved = File(file.checks, file.address, elsewhere=str(packaged))
    monkeypatch.setattr(files, "FILES", {**FILES, FASHION: moved})
    assert locate(FASHION) == packaged
    put(cache / FASHION)
    assert locate(FASHION) == cache / FASHION


def test_fashion_mnist_is_where_debian_puts_it():
    assert FILES[FASHION].elsewhere == (
        "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz"
    )


def test_nothing_is_fetched_when_it_may_not_be(own, monkeypatch):
    monkeypatch.setattr(files, "download", pretend_download)
    with pytest.raises(DataNotFoundError, match="is not on this machine"):
        locate(AIRFOIL, fetch=False)


def test_a_users_own_file_is_taken_as_it_is(own):
    put(own / AIRFOIL, "no known checksum")
    assert locate(AIRFOIL).read_text() == "no known checksum"


def test_a_folder_of_the_user_is_found(own):
    put(own / "poverty_v1.1" / "dhs_metadata.csv")
    assert locate("poverty_v1.1") == own / "poverty_v1.1"
    assert locate("poverty_v1.1/dhs_metadata.csv").is_file()


def test_a_half_filled_folder_of_the_cache_is_completed(cache, monkeypatch):
    put(cache / "dti_davis" / "proteins.txt", "kept")
    with pytest.raises(DataNotFoundError):
        locate("dti_davis", fetch=False)
    monkeypatch.setattr(files, "download", pretend_download)
    folder = locate("dti_davis")
    assert folder == cache / "dti_davis"
    found = {path.relative_to(cache).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {name for name in FILES if name.startswith("dti_davis/")}
    assert (folder / "proteins.txt").read_text() == "kept"
    address = (folder / "folds" / "test_fold_setting1.txt").read_text()
    assert address.endswith("/data/davis/folds/test_fold_setting1.txt")
    assert locate("dti_davis", fetch=False) == folder


def test_a_file_that_was_never_heard_of_is_looked_for_too(own):
    with pytest.raises(DataNotFoundError, match="other/file.csv is not on this machine"):
        locate("other/file.csv")
    mine = put(own / "other" / "file.csv")
    assert locate("other/file.csv") == mine


def test_without_network_the_manual_way_is_told_in_one_line(own):
    with pytest.raises(DataNotFoundError) as raised:
        locate(AIRFOIL)
    told = str(raised.value)
    assert "no network" in told
    assert f"Download {FILES[AIRFOIL].address} by hand." in told
    assert f"Put it at {AIRFOIL} in a folder" in told
    assert f"REGAUG_DATA to that folder (now {own})" in told
    assert "\n" not in told


def test_a_wrong_file_is_told_with_the_manual_way(own, monkeypatch):
    def wrong(address, target, *, checks, limit):
        raise DataError("It is another file.")

    monkeypatch.setattr(files, "download", wrong)
    with pytest.raises(DataError, match="It is another file. Download https.* by hand"):
        locate(AIRFOIL)


def test_a_data_folder_that_does_not_exist_is_pointed_out(own, monkeypatch):
    monkeypatch.setenv("REGAUG_DATA", str(own / "nowhere"))
    with pytest.raises(DataNotFoundError, match="nowhere, which is no folder"):
        locate(AIRFOIL)


@pytest.mark.parametrize(
    ("relative", "words"),
    [
        ("skillcraft/SkillCraft1_Dataset.csv", "UCI dataset 272"),
        ("poverty_v1.1", "13 GB"),
        ("poverty_v1.1/dhs_metadata.csv", "WILDS"),
        ("echonet", "agreement"),
        ("dti_dg_group/bindingdb_patent", "Therapeutics Data Commons"),
        (FASHION, "apt-get install dataset-fashion-mnist"),
        ("dti_davis", "DeepDTA/a546a8433a6822e958f36171c4356ad6f414d623/data/davis by hand"),
    ],
)
def test_every_manual_way_names_its_source(relative, words, monkeypatch):
    monkeypatch.delenv("REGAUG_DATA", raising=False)
    assert words in by_hand(relative)
    assert by_hand(relative).endswith("set REGAUG_DATA to that folder.")


def test_the_cache_is_where_it_was_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setenv("REGAUG_CACHE", "~/mine")
    assert cache_folder() == Path.home() / "mine"
    monkeypatch.delenv("REGAUG_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "regaug" in str(cache_folder())


@pytest.mark.parametrize("relative", FILES)
def test_every_known_file_can_be_verified(relative):
    lengths = {"sha256": 64, "unpacked": 64, "md5": 32, "sha1": 40, "gitblob": 40}
    file = FILES[relative]
    assert file.checks
    for kind, value in file.checks.items():
        assert re.fullmatch(rf"[0-9a-f]{{{lengths[kind]}}}", value)
    assert file.address or file.by_hand
    assert file.address is None or file.address.startswith("https://")


@pytest.mark.parametrize("relative", sorted(name for name, file in FILES.items() if file.size))
def test_the_real_file_is_the_known_one(real_data, relative):
    path = real_data / relative
    assert path.stat().st_size == FILES[relative].size
    for kind, value in FILES[relative].checks.items():
        assert digest(path, kind) == value


def test_no_real_file_is_unknown_and_the_readme_says_the_same(real_data):
    readme = (real_data / "README.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| (\d+) \| `([0-9a-f]{64})` \|$", readme, re.MULTILINE)
    assert len(rows) == 20
    known = {name: (file.size, file.checks.get("sha256")) for name, file in FILES.items()}
    assert {name: (int(size), sha256) for name, size, sha256 in rows} == {
        name: entry for name, entry in known.items() if entry[0]
    }
    for folder in {name.split("/")[0] for name in FILES}:  # others may keep theirs beside them
        here = {path for path in (real_data / folder).rglob("*.*") if path.is_file()}
        assert {path.relative_to(real_data).as_posix() for path in here} <= set(FILES)


def test_every_address_is_one_of_the_readme(real_data):
    readme = (real_data / "README.md").read_text().partition("## Where a user downloads them")[2]
    listed = re.findall(r"https://[^ |]+", readme)
    listed.append(listed[2].replace("exchange_rate/exchange_rate", "electricity/electricity"))
    for relative, file in FILES.items():
        if file.address:
            inside = relative.partition("/")[2]
            # What the README has from a branch is fetched from a commit of it.
            address = re.sub(r"/raw/[0-9a-f]{40}/", "/raw/master/", file.address)
            bases = {file.address, address, file.address.removesuffix(inside)}
            bases.add(file.address.removesuffix(f"davis/{inside}"))
            bases.add(file.address.removesuffix(f"kiba/{inside}"))
            assert bases & set(listed), relative
    digests = re.findall(r"`([0-9a-f]{32,40})`", readme)
    known = {value for file in FILES.values() for value in file.checks.values()}
    assert set(digests) <= known


def test_debians_files_hold_what_the_package_has():
    path = Path(FILES[FASHION].elsewhere)
    if not path.is_file():
        pytest.skip("needs Debian's dataset-fashion-mnist")
    expected = "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == expected


def test_no_folder_is_also_a_file():
    assert not any(name.startswith(folder) for folder in FOLDERS for name in FILES)
