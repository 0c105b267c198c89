"""Lightning Fabric, set up for one training: device, precision, and processes."""

import os
from typing import Any, Literal

from regaug._checks import check_choice

Precision = Literal["32", "bf16", "16", "64"]
# Half precision is mixed: the weights stay in float32.
_NAMES: dict[Precision, str] = {
    "32": "32-true",
    "bf16": "bf16-mixed",
    "16": "16-mixed",
    "64": "64-true",
}


def make_fabric(device: str, precision: Precision) -> Any:
    """Return a launched Fabric.

    Launched by ``torchrun`` it trains in all of its processes (DDP), otherwise in this one.
    """
    from lightning_fabric import Fabric

    check_choice("precision", precision, tuple(_NAMES))
    accelerator, _, number = device.partition(":")
    if "TORCHELASTIC_RUN_ID" in os.environ:
        local = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // local
        processes: dict[str, Any] = {"devices": local, "num_nodes": nodes, "strategy": "ddp"}
    else:
        processes = {"devices": [int(number)] if number else 1}
    fabric = Fabric(accelerator=accelerator, precision=_NAMES[precision], **processes)  # type: ignore[arg-type]
    fabric.launch()
    return fabric
