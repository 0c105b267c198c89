"""The browser that the tests of a file share."""

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from tests.browser.chromium import CHROMIUM, Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    binary = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs Chromium and chromedriver (Debian: chromium, chromium-driver)")
    with subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started = (re.search(r"successfully on port (\d+)", line) for line in process.stdout)
        port = next((found[1] for found in started if found), None)
        try:
            assert port is not None, "chromedriver did not start"
            opened = Browser(f"http://127.0.0.1:{port}", binary, tmp_path_factory.mktemp("profile"))
            yield opened
            opened.close()
        finally:
            process.terminate()
