"""Documents that were changed and sealed again, so that no checksum gives the change away."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import torch
from tests.fuzz.mutations import mutate_tree

from regaug import _files, _tensors
from regaug.runs.run import run_key


def reseal_json(path: Path, rng: Random) -> None:
    """Change a JSON file that has no checksum."""
    path.write_text(json.dumps(mutate_tree(json.loads(path.read_text()), rng)) + "\n")


def reseal_study(path: Path, rng: Random) -> None:
    """Change ``study.json``, and its key with it."""
    document = json.loads(path.read_text())
    if rng.random() < 0.7:
        document["configuration"] = mutate_tree(document["configuration"], rng)
    else:
        document = mutate_tree(document, rng)
    _rekey(document, "configuration")
    path.write_text(json.dumps(document, indent=2) + "\n")


def reseal_runs(path: Path, rng: Random) -> None:
    """Change some lines of a store, their keys and checksums with them."""
    lines = path.read_bytes().splitlines()
    share = rng.choice((0.03, 0.3, 1.0))
    for place, line in enumerate(lines):
        if rng.random() < share:
            document = json.loads(line)
            document.pop("crc32")
            document["record"] = mutate_tree(document["record"], rng)
            _rekey(document, "record", "run")
            lines[place] = _files.seal(document).rstrip(b"\n")
    path.write_bytes(b"\n".join(lines) + b"\n")


def reseal_model(folder: Path, rng: Random) -> None:
    """Change a model's document, or its tensors, so that both fit."""
    file, tensors_file = folder / "model.json", folder / "model.safetensors"
    document = json.loads(file.read_text())
    document.pop("crc32")
    tensors, _ = _tensors.read_tensors(tensors_file)
    if rng.random() < 0.5:
        document = mutate_tree(document, rng)
        if isinstance(document, dict) and isinstance(document.get("state"), dict):
            _mutate_encoder(document["state"], rng)
    else:
        tensors = mutate_tensors(tensors, rng)
    content, checksum = _tensors.dump_tensors(tensors, {})
    tensors_file.write_bytes(content)
    if isinstance(document, dict):
        document["tensors"] = checksum
        file.write_bytes(_files.seal(document))


def reseal_tensors(path: Path, rng: Random) -> None:
    """Change a file of tensors and its document."""
    tensors, document = _tensors.read_tensors(path)
    for name in ("format", "regaug", "tensors", "crc32"):
        document.pop(name, None)
    changed: Any = document
    if rng.random() < 0.5:
        tensors = mutate_tensors(tensors, rng)
    else:
        changed = mutate_tree(document, rng)
    content, _ = _tensors.dump_tensors(tensors, changed if isinstance(changed, dict) else {})
    path.write_bytes(content)


def mutate_tensors(tensors: dict[str, torch.Tensor], rng: Random) -> dict[str, torch.Tensor]:
    """Return tensors of which one has other values, another shape, type or name, or is gone."""
    found = dict(tensors)
    name = rng.choice(sorted(found))
    value = found.pop(name)
    made = rng.choice(_TENSORS)(value, rng)
    if made is not None:
        found[name if rng.random() < 0.9 else name + "x"] = made.contiguous().clone()
    return found


def _replaced(value: torch.Tensor, rng: Random) -> torch.Tensor:
    value = value.clone()
    if value.numel():
        numbers = (1e300, 1e30, -1e30, float("nan"), float("inf"), 0.0, -1.0, 2**40)
        odd = torch.tensor(rng.choice(numbers), dtype=torch.float64)
        value.view(-1)[rng.randrange(value.numel())] = odd.to(value.dtype)
    return value


_TENSORS: tuple[Callable[[torch.Tensor, Random], torch.Tensor | None], ...] = (
    _replaced,
    _replaced,
    lambda value, rng: value * rng.choice((1e30, 0, -1)),
    lambda value, rng: value.to(rng.choice((torch.float64, torch.float16, torch.int64))),
    lambda value, rng: value.reshape(-1),
    lambda value, rng: value[None],
    lambda value, rng: value[:0] if value.ndim else value[None][:0],
    lambda value, rng: value[:1] if value.ndim else value,
    lambda value, rng: torch.cat([value, value]) if value.ndim else value,
    lambda value, rng: None,
)


def _rekey(document: Any, *path: str) -> None:
    """Give a document the key of what it holds, where that has one."""
    value = document
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(document, dict):
        try:
            document["key"] = run_key(value)
        except Exception:  # whatever it holds has none
            document["key"] = "0"


def _mutate_encoder(state: dict[str, Any], rng: Random) -> None:
    """Change the text of JSON that says how columns are encoded."""
    if isinstance(state.get("encoder"), str) and rng.random() < 0.5:
        try:
            state["encoder"] = json.dumps(mutate_tree(json.loads(state["encoder"]), rng))
        except ValueError:
            return
