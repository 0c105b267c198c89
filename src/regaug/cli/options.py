"""What commands share that train many runs: who works, and where the runs are kept."""

from pathlib import Path
from typing import Annotated

import typer

Jobs = Annotated[int, typer.Option("-j", "--jobs", help="Worker processes.")]
ExecutorName = Annotated[str, typer.Option(help="Who works: process, or ray (an extra).")]
RayAddress = Annotated[
    str | None, typer.Option(help="Where a Ray cluster listens; else Ray runs here.")
]
Out = Annotated[Path, typer.Option(help="Folder that keeps every finished run.")]
