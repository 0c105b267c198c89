"""The report on the first page: a real study of the built-in table, made when the site is built.

It is made again when the library has changed, and kept otherwise.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

COMMAND = ["compare", "--quick", "--jobs", "2"]
log = logging.getLogger(__name__)


def fingerprint(source: Path) -> str:
    """Return a digest of the library: of every file that could change the report."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*")):
        if path.suffix in {".py", ".j2", ".toml"}:
            digest.update(path.relative_to(source).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def make_report(source: Path, folder: Path) -> Path:
    """Run the study unless the report that is kept is one of this library; return the report."""
    report, mark = folder / "report.html", folder / "made-by.txt"
    key = fingerprint(source)
    if report.exists() and mark.exists() and mark.read_text() == key:
        return report
    log.info("running regaug %s for the first page ...", " ".join(COMMAND))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "regaug", *COMMAND, "--out", str(folder / "runs")]
    paths = [str(source.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"regaug {' '.join(COMMAND)} failed:\n{done.stdout}{done.stderr}")
    (folder / "printed.txt").write_text(done.stdout)
    (made,) = (folder / "runs").glob("*/quick/report.html")
    shutil.copy(made, report)
    mark.write_text(key)
    return report


def add_report(app: Sphinx, config: Config) -> None:
    """Put the report into the site, as ``demo/report.html``."""
    project = Path(app.srcdir).parent
    kept = project / "build" / "docs"
    report = make_report(project / "src" / "regaug", kept / "study")
    (kept / "extra" / "demo").mkdir(parents=True, exist_ok=True)
    shutil.copy(report, kept / "extra" / "demo" / "report.html")
    config.html_extra_path.append(str(kept / "extra"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the report before anything is written."""
    app.connect("config-inited", add_report)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
