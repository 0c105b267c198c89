"""What was found in a table, in a few lines of text."""

from collections.abc import Sequence

from regaug.data.tabular.encoding import Encoder
from regaug.formatting import count

_MAX_NOTES = 20
# What a reader must see first: what is lost, what may be wrong, what was changed.
_FIRST = (" left out: ", " in two ways: ", " kept as text: ", " taken as missing", " read ")


def summarize(
    name: str,
    rows: int,
    targets: Sequence[str],
    encoder: Encoder,
    *,
    about_table: Sequence[str],
    about_columns: Sequence[str],
) -> str:
    """Return the summary of a table, from what there is to say about it and its columns."""
    kinds = [column.kind for column in encoder.columns]
    counts = ", ".join(count(kinds.count(kind), f"{kind} column") for kind in dict.fromkeys(kinds))
    lines = [
        f"{name}: {count(rows, 'row')}, {count(len(targets), 'target')} "
        f"({', '.join(map(repr, targets))}), inputs: {counts}, "
        f"encoded as {count(len(encoder.feature_names), 'number')} per row.",
        *about_table,
    ]
    said = sorted(about_columns, key=_rank)
    lines += [f"- {note}" for note in said[:_MAX_NOTES]]
    if len(said) > _MAX_NOTES:
        lines.append(f"- and {len(said) - _MAX_NOTES} more")
    return "\n".join(lines)


def _rank(note: str) -> int:
    return next((rank for rank, words in enumerate(_FIRST) if words in note), len(_FIRST))
