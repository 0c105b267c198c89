"""What the library says to whoever writes Python, said to whoever types commands."""

import re
from collections.abc import Mapping

# Ways out that are written in Python, and what a command has for them; empty if nothing.
_HINTS = (
    (r"Name the column: read_table\(\.\.\., (\w+)=\.\.\.\)\.", r"Name the column: --\1 NAME."),
    (r"Use \.split\(split='(\w+)'\)\.", r"Use --split \1."),
    (r"Fit one that has intervals: regaug\.fit\(data\)\.", "Fit one that has: regaug fit."),
    (r"a table: regaug\.data\.read_table\(\.\.\.\), or", "a table: a file of your own, or"),
    (r" Train other models with regaug\.training\.fit\.", ""),
    (r" Take Problem\.named\(.*?\), which has a network for it\.", ""),
    (r",? or read it with pandas\.read_csv\(.*?\) and pass the frame", ""),
    (r" Read it with pandas and pass the frame\.", ""),
    (r"executor=(\\?[\"'])(\w+)\1", r"--executor \2"),
    (r"with method='([\w-]+)'", r"with --method \1"),
    (r"\bmodel=\"(\w+)\"", r"--model \1"),
    (r"\bjobs=(\d+)", r"-j \1"),
    (r"must be None\b", "must be left out"),
    (
        r"must be an array of numbers \(n, (\d+)\), got could not convert string to float: (.*?)\.",
        r"must have \1 columns of numbers, got \2.",
    ),
    (r"must be \(n, (\d+)\), got \(\d+, (\d+)\)", r"must have \1 columns, got \2"),
)


def reword(message: str, options: Mapping[str, str]) -> str:
    """Return a message of the library as a command says it.

    Args:
        message: What the library says: arguments in backticks, ways out in Python.
        options: From the names of arguments to those of the command's own options.

    Example:
        >>> reword("`max_minutes` must be greater than 0, got 0.", {"max_minutes": "--max-minutes"})
        '`--max-minutes` must be greater than 0, got 0.'
    """
    for pattern, replacement in _HINTS:
        message = re.sub(pattern, replacement, message)
    message = re.sub(r"`(\w+)`", lambda found: f"`{options.get(found[1], found[1])}`", message)
    # A list of texts is a list of names: without what makes it one in Python.
    return re.sub(r"\[('[^'\[\]]*'(?:, '[^'\[\]]*')*)\]", r"\1", message)
