"""The weights of a study's nets: a file for every finished run of a network, in its folder."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from torch import Tensor

from regaug._files import remove_leftovers, write_bytes
from regaug._tensors import dump_tensors, read_tensors
from regaug.runs.run import Run

NETS = "nets"
_ENDING = ".safetensors"


def net_file(folder: Path, run: Run) -> Path:
    """Return where the weights of a run are kept, in a study's folder."""
    return folder / NETS / f"{run.key}{_ENDING}"


def write_net(folder: Path, run: Run, weights: Mapping[str, Tensor]) -> None:
    """Keep the weights of a finished run, parameters and buffers under their own names."""
    dense = {name: own.detach().cpu().contiguous() for name, own in weights.items()}
    write_bytes(net_file(folder, run), dump_tensors(dense, {})[0])


def read_net(file: Path) -> dict[str, Tensor]:
    """Read the weights of a net, as ``net.load_state_dict`` takes them."""
    return read_tensors(file)[0]


def keep_nets(folder: Path, runs: Iterable[Run]) -> None:
    """Remove the weights of all runs but these; what cannot be removed stays."""
    kept = {net_file(folder, run) for run in runs}
    remove_leftovers(folder / NETS, f"*{_ENDING}")
    for file in (folder / NETS).glob(f"*{_ENDING}"):
        if file not in kept:
            with suppress(OSError):  # another process of the same study may do the same
                file.unlink()
