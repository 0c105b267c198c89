"""How much of a prediction is whose, in numbers and in words."""

from collections.abc import Sequence

from regaug.ensemble.component import Component
from regaug.formatting import count, percent


def shares_of(components: Sequence[Component]) -> dict[str, float]:
    """Return the share of every method and baseline, the largest first."""
    found: dict[str, float] = {}
    for own in components:
        found[own.method] = found.get(own.method, 0.0) + own.share
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def describe(method: str, components: Sequence[Component]) -> str:
    """Return what a model is made of, in a line.

    Such as ``auto: nets 55 % (erm 40 %, foma-rho 15 %), gp 30 %, trees 15 %; 65 models``.
    """
    nets = [own for own in components if not own.is_baseline]
    total = sum(len(own.models) for own in components)
    if len(components) == 1 and components[0].method == method:
        return f"{method}: {count(total, 'net' if nets else 'model')}"
    entries = [own for own in components if own.is_baseline]
    parts = [(share, f"{name} {percent(share)}") for name, share in shares_of(entries).items()]
    if nets:
        shares = shares_of(nets)
        listed = ", ".join(f"{name} {percent(share)}" for name, share in shares.items())
        share = sum(shares.values())
        parts.append((share, f"nets {percent(share)} ({listed})"))
    parts.sort(key=lambda part: -part[0])
    return f"{method}: {', '.join(words for _, words in parts)}; {count(total, 'model')}"
