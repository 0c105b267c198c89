"""The built site in a real browser: no other host, light and dark, phones, what axe finds."""

import functools
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.browser.chromium import Browser

pytestmark = [pytest.mark.site, pytest.mark.serial]

SITE = Path(__file__).resolve().parents[2] / "site"
PAGES = [
    "index.html",
    "guide.html",
    "methods/foma.html",
    "reproduction.html",
    "api/regaug.FOMA.html",
    "examples/index.html",
]
REPORT = "demo/report.html"
AXE = "axe-core@4.14.0"
PAPER = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that says nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the site is served."""
    if not (SITE / "index.html").exists():
        pytest.skip("needs the built site: make docs")
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The checker of accessibility, from npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm, for axe-core")
    folder = tmp_path_factory.mktemp("axe")
    packed = subprocess.run(
        [npm, "pack", "--json", AXE], cwd=folder, capture_output=True, text=True, check=False
    )
    if packed.returncode:
        pytest.skip(f"npm cannot have {AXE}: {packed.stderr.strip()[-200:]}")
    shutil.unpack_archive(folder / json.loads(packed.stdout)[0]["filename"], folder)
    return (folder / "package" / "axe.min.js").read_text()


@pytest.mark.parametrize("page", [*PAGES, REPORT])
def test_a_page_asks_no_other_host_and_complains_of_nothing(
    browser: Browser, address: str, page: str
) -> None:
    browser.open("about:blank", width=1280)
    browser.requests(), browser.errors()
    browser.open(f"{address}/{page}", width=1280)
    browser.run("scrollTo(0, document.body.scrollHeight)")
    asked = browser.requests()
    assert f"{address}/{page}" in asked
    hosts = {urlsplit(at).netloc for at in asked if not at.startswith(("data:", "blob:"))}
    assert hosts == {urlsplit(address).netloc}
    # The theme tells of what it does; what fails, fails aloud.
    complaints = [said for said in browser.errors() if "[PST]" not in said]
    assert complaints == []


@pytest.mark.parametrize("page", [*PAGES, REPORT])
def test_a_page_is_light_or_dark_as_the_system_is_and_fits_a_phone(
    browser: Browser, address: str, page: str
) -> None:
    browser.open(f"{address}/{page}", width=390, dark=True)
    assert max(browser.run(PAPER)) < 60
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    browser.open(f"{address}/{page}", width=390)
    assert min(browser.run(PAPER)) > 240


def test_the_report_on_the_first_page_is_dark_where_the_page_is(
    browser: Browser, address: str
) -> None:
    inner = (
        "const page = document.querySelector('iframe.report').contentDocument;"
        "return getComputedStyle(page.body).backgroundColor.match(/\\d+/g).map(Number)"
    )
    browser.open(f"{address}/index.html", width=1280)
    assert min(browser.run(inner)) > 240
    browser.run("document.documentElement.dataset.theme = 'dark'")  # as the button does
    assert (
        max(
            browser.run(
                f"return new Promise(done => setTimeout(done, 500)).then(() => {{{inner}}})"
            )
        )
        < 60
    )


def test_search_finds_a_name(browser: Browser, address: str) -> None:
    browser.open(f"{address}/search.html?q=NearestBatchSampler", width=1280)
    found = browser.run(
        "return new Promise(done => { const look = () => {"
        "  const links = [...document.querySelectorAll('#search-results li a')];"
        "  links.length ? done(links.map(link => link.textContent)) : setTimeout(look, 100);"
        "}; look(); })"
    )
    assert any("NearestBatchSampler" in title for title in found)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("page", [*PAGES, REPORT])
def test_axe_finds_nothing_serious(
    browser: Browser, address: str, axe: str, page: str, dark: bool
) -> None:
    browser.open(f"{address}/{page}", width=1280, dark=dark)
    browser.run(axe)
    found = browser.run(
        "return new Promise(done => setTimeout(done, 400)).then(() => axe.run(document))"
        ".then(result => result.violations"
        "  .filter(one => ['serious', 'critical'].includes(one.impact))"
        "  .map(one => [one.id, one.help, one.nodes.slice(0, 3).map(node => node.html)]))"
    )
    assert found == []
