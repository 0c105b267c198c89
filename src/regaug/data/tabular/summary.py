"""What was found in a table, in a few lines of text."""

from collections.abc import Sequence

from regaug.data.tabular.encoding import Encoder
from regaug.formatting import count

_MAX_NOTES = 20


def summarize(
    name: str, rows: int, targets: Sequence[str], encoder: Encoder, notes: Sequence[str]
) -> str:
    """Return the summary of a table; ``notes`` are about the table, the encoder's about columns."""
    kinds = [column.kind for column in encoder.columns]
    counts = ", ".join(count(kinds.count(kind), f"{kind} column") for kind in dict.fromkeys(kinds))
    lines = [
        f"{name}: {count(rows, 'row')}, {count(len(targets), 'target')} "
        f"({', '.join(map(repr, targets))}), inputs: {counts}, "
        f"encoded as {count(len(encoder.feature_names), 'number')} per row.",
        *notes,
    ]
    said = sorted(encoder.notes, key=lambda note: " left out: " not in note)
    lines += [f"- {note}" for note in said[:_MAX_NOTES]]
    if len(said) > _MAX_NOTES:
        lines.append(f"- and {len(said) - _MAX_NOTES} more: see `.split().encoder.notes`")
    return "\n".join(lines)
