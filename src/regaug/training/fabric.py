"""Lightning Fabric, set up for one training: device, precision, and processes."""

import os
from dataclasses import dataclass
from typing import Any, Literal

from regaug._checks import check_choice, check_integer

Precision = Literal["32", "bf16", "16", "64"]
# Half precision is mixed: the weights stay in float32.
_NAMES = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed", "64": "64-true"}


@dataclass(frozen=True)
class Machine:
    """What a training runs on.

    Attributes:
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``; ``"auto"`` takes the best there is.
            Only CPUs were at hand to test it.
        precision: ``"32"``, ``"bf16"`` or ``"16"`` (mixed precision), or ``"64"``.
        workers: Processes that read inputs which are not in memory (images, videos).
    """

    device: str = "auto"
    precision: Precision = "32"
    workers: int = 0

    def __post_init__(self) -> None:
        check_choice("precision", self.precision, tuple(_NAMES))
        check_integer("workers", self.workers, 0)


def make_fabric(machine: Machine) -> Any:
    """Return a launched Fabric: in all processes of ``torchrun`` (DDP), otherwise in this one."""
    from lightning_fabric import Fabric

    accelerator, _, number = machine.device.partition(":")
    processes: dict[str, Any] = {"devices": [int(number)] if number else 1}
    if "TORCHELASTIC_RUN_ID" in os.environ:
        local = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // local
        processes = {"devices": local, "num_nodes": nodes, "strategy": "ddp"}
    fabric = Fabric(accelerator=accelerator, precision=_NAMES[machine.precision], **processes)  # type: ignore[arg-type]
    fabric.launch()
    return fabric
