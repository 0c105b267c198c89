"""Fetching one file from a server of our own."""

import errno
import gzip
import hashlib
import multiprocessing
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from regaug.data.datasets import download as module
from regaug.data.datasets.download import digest, download, verify
from regaug.data.datasets.facts import FILES
from regaug.exceptions import ArgumentError, DataError, DataNotFoundError

BODY = bytes(range(256)) * 2000
SHA256 = {"sha256": hashlib.sha256(BODY).hexdigest()}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/endless":
            extra = 1000 if self.path in ("/cut", "/stalls") else 0
            self.send_header("Content-Length", str(len(BODY) + extra))
        if self.path == "/encodes" and "gzip" in self.headers.get("Accept-Encoding", ""):
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        try:
            for start in range(0, len(BODY), 2**15):
                self.wfile.write(BODY[start : start + 2**15])
                if self.path == "/slow":
                    time.sleep(0.02)
            if self.path == "/stalls":
                time.sleep(1.0)
        except OSError:
            pass  # the client has gone, as it should

    def log_message(self, *args):
        pass


pytestmark = pytest.mark.serial  # a port of this machine


@pytest.fixture(scope="module")
def server():
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def files_under(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if not path.is_dir()]


def test_a_good_file_is_put_in_place_and_nothing_else(server, tmp_path, capfd):
    target = tmp_path / "cache" / "deep" / "file.dat"
    assert download(f"{server}/good", target, checks=SHA256) == target
    assert target.read_bytes() == BODY
    assert files_under(tmp_path) == [target]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["sha256", "md5", "sha1", "gitblob"])
def test_every_kind_of_checksum_is_verified(server, tmp_path, kind):
    prefix = b"blob %d\0" % len(BODY) if kind == "gitblob" else b""
    expected = hashlib.new("sha1" if kind == "gitblob" else kind, prefix + BODY).hexdigest()
    target = tmp_path / "file.dat"
    assert digest(download(f"{server}/good", target, checks={kind: expected}), kind) == expected
    wrong = ("1" if expected[0] == "0" else "0") + expected[1:]
    with pytest.raises(DataError, match=f"its {kind} is {expected}"):
        verify(target, {kind: wrong})


def test_the_git_name_of_a_file_is_the_one_git_gives(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"what is up, doc?")  # the example of the Pro Git book
    assert digest(path, "gitblob") == "bd9dbf5aae1a3862dd1526723246b20206e5fc37"


def test_an_unknown_kind_of_checksum_is_refused(server, tmp_path):
    with pytest.raises(ArgumentError, match="`kind` must be one of"):
        download(f"{server}/good", tmp_path / "file", checks={"crc32": "00"})
    assert files_under(tmp_path) == []


def test_nothing_is_fetched_that_cannot_be_verified(server, tmp_path):
    with pytest.raises(ArgumentError, match="`checks`"):
        download(f"{server}/good", tmp_path / "file", checks={})


@pytest.mark.parametrize(
    ("path", "options", "error", "words"),
    [
        ("good", {"checks": {"sha256": "0" * 64}}, DataError, "is not the file"),
        ("good", {"checks": {**SHA256, "md5": "0" * 32}}, DataError, "its md5 is"),
        ("good", {"limit": len(BODY) - 1}, DataError, f"larger than the {len(BODY) - 1} bytes"),
        ("endless", {"limit": 70_000}, DataError, "larger than the 70000 bytes"),
        ("cut", {}, DataNotFoundError, "/cut: the connection was cut."),
        ("missing", {}, DataNotFoundError, "the server answered 404 Not Found."),
    ],
)
def test_a_failure_leaves_nothing_behind_and_can_be_repeated(
    server, tmp_path, path, options, error, words
):
    target = tmp_path / "file.dat"
    with pytest.raises(error, match=words) as raised:
        download(f"{server}/{path}", target, **{"checks": SHA256, **options})
    assert "\n" not in str(raised.value)
    assert files_under(tmp_path) == []
    assert download(f"{server}/good", target, checks=SHA256).read_bytes() == BODY


def test_a_failure_keeps_the_file_that_was_there(server, tmp_path):
    target = tmp_path / "file.dat"
    target.write_bytes(b"before")
    with pytest.raises(DataNotFoundError):
        download(f"{server}/cut", target, checks=SHA256)
    assert target.read_bytes() == b"before"


def test_a_file_of_exactly_the_limit_is_allowed(server, tmp_path):
    target = download(f"{server}/good", tmp_path / "file", checks=SHA256, limit=len(BODY))
    assert target.stat().st_size == len(BODY)


def test_bytes_are_asked_for_as_they_are_stored(server, tmp_path):
    target = download(f"{server}/encodes", tmp_path / "file.gz", checks=SHA256)
    assert target.read_bytes() == BODY


def test_a_server_that_is_down_is_named(tmp_path):
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port = httpd.server_port
    httpd.server_close()
    with pytest.raises(DataNotFoundError, match=f"127.0.0.1:{port}/good: no connection to the"):
        download(f"http://127.0.0.1:{port}/good", tmp_path / "file", checks=SHA256)
    assert files_under(tmp_path) == []


def test_only_the_web_is_an_address(tmp_path):
    (tmp_path / "secret").write_bytes(BODY)
    address = (tmp_path / "secret").as_uri()
    with pytest.raises(DataNotFoundError, match="Could not fetch file:"):
        download(address, tmp_path / "copy", checks=SHA256)


def test_a_server_that_falls_silent_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", (0.2, 0.2))
    with pytest.raises(DataNotFoundError, match="did not answer in time"):
        # More is announced than comes, so the client waits for it.
        download(f"{server}/stalls", tmp_path / "file", checks=SHA256)
    assert files_under(tmp_path) == []


def test_ctrl_c_leaves_nothing_behind(server, tmp_path, monkeypatch):
    def interrupt(self, piece):
        raise KeyboardInterrupt

    monkeypatch.setattr(module._LimitedFile, "write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        download(f"{server}/good", tmp_path / "file", checks=SHA256)
    assert files_under(tmp_path) == []


def test_what_a_killed_process_left_is_removed_a_day_later(server, tmp_path):
    old, fresh = tmp_path / ".file.dat.1.tmp", tmp_path / ".file.dat.2.tmp"
    old.write_bytes(b"half")
    fresh.write_bytes(b"another process is writing this")
    os.utime(old, (1e9, 1e9))
    download(f"{server}/good", tmp_path / "file.dat", checks=SHA256)
    assert sorted(files_under(tmp_path)) == [fresh, tmp_path / "file.dat"]


def refuse(*args, **kwargs):
    raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize(("owner", "step"), [(Path, "mkdir"), (Path, "open"), (os, "replace")])
def test_a_cache_that_cannot_be_written_is_named_with_the_way_out(
    server, tmp_path, monkeypatch, owner, step
):
    target = tmp_path / "file.dat"
    monkeypatch.setattr(owner, step, refuse)
    with pytest.raises(DataNotFoundError, match="Permission denied") as raised:
        download(f"{server}/good", target, checks=SHA256)
    monkeypatch.undo()
    assert str(tmp_path) in str(raised.value)
    assert "REGAUG_CACHE" in str(raised.value)
    assert files_under(tmp_path) == []


def test_a_cache_that_is_a_file_is_named(server, tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.raises(DataNotFoundError, match="REGAUG_CACHE"):
        download(f"{server}/good", tmp_path / "cache" / "file.dat", checks=SHA256)


def test_a_full_disk_is_named(server, tmp_path, monkeypatch):
    def full(fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataNotFoundError, match="No space left on device"):
        download(f"{server}/good", tmp_path / "file.dat", checks=SHA256)
    monkeypatch.undo()
    assert files_under(tmp_path) == []


@pytest.mark.parametrize("is_good", [True, False])
def test_a_file_in_use_counts_if_it_is_the_right_one(server, tmp_path, monkeypatch, is_good):
    target = tmp_path / "file.dat"
    target.write_bytes(BODY if is_good else b"other")
    monkeypatch.setattr(os, "replace", refuse)  # what Windows does while somebody reads it
    if is_good:
        assert download(f"{server}/good", target, checks=SHA256) == target
    else:
        with pytest.raises(DataError):
            download(f"{server}/good", target, checks=SHA256)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks the processes")
def test_two_processes_can_fetch_the_same_file_at_once(server, tmp_path):
    target = tmp_path / "file.dat"
    context = multiprocessing.get_context("fork")
    options = {"checks": SHA256}
    processes = [
        context.Process(target=download, args=(f"{server}/slow", target), kwargs=options)
        for _ in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert target.read_bytes() == BODY
    assert files_under(tmp_path) == [target]


def test_a_terminal_sees_a_bar(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    download(f"{server}/slow", tmp_path / "file.dat", checks=SHA256)
    captured = capsys.readouterr()
    assert "file.dat" in captured.err
    assert captured.out == ""


def test_importing_it_imports_no_downloader(fresh):
    code = (
        "import sys, regaug.data.datasets.files;"
        "print({'pooch', 'requests', 'rich'} & {*sys.modules})"
    )
    assert fresh(code) == "set()"


def test_what_a_gzip_file_holds_has_the_same_sum_however_it_was_packed(tmp_path):
    content = b"some bytes" * 1000
    (tmp_path / "a.gz").write_bytes(gzip.compress(content, 1))
    (tmp_path / "b.gz").write_bytes(gzip.compress(content, 9))
    sums = {digest(tmp_path / name, "unpacked") for name in ("a.gz", "b.gz")}
    assert sums == {hashlib.sha256(content).hexdigest()}
    (tmp_path / "c.gz").write_bytes(gzip.compress(content)[:-9])
    for damaged in (gzip.compress(content)[:-9], content, b""):
        (tmp_path / "c.gz").write_bytes(damaged)
        assert digest(tmp_path / "c.gz", "unpacked") not in sums


def test_the_system_s_copy_of_fashion_mnist_holds_what_it_must():
    known = {path: own for path, own in FILES.items() if path.startswith("fashion_mnist/")}
    assert len(known) == 4
    for own in known.values():
        assert own.checks.keys() == {"unpacked", "md5"}
        place = Path(str(own.elsewhere))
        if not place.exists():
            pytest.skip("needs the package dataset-fashion-mnist")
        verify(place, {"unpacked": own.checks["unpacked"]})


def test_no_address_leads_to_a_branch():
    addresses = [str(own.address) for own in FILES.values() if own.address]
    assert not [one for one in addresses if "/master/" in one or "/main/" in one]
