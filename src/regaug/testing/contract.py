"""A contract: checks, each of which says what is missing."""

from collections.abc import Callable, Iterable, Sequence
from inspect import getdoc
from typing import TypeVar

from regaug.exceptions import ContractError

T = TypeVar("T")
# Gives a sentence for everything that is missing.
Check = Callable[[T], Iterable[str]]


def go_through(checks: Sequence[Check[T]], thing: T, *, name: str, word: str) -> None:
    """Make all checks of a thing; raise one error with all that is missing.

    Args:
        checks: The contract. The first line of each one's docstring is what it checks.
        thing: What is checked.
        name: What it is called.
        word: What it should be, such as "augmentation".
    """
    missing: list[str] = []
    for check in checks:
        try:
            missing += check(thing)
        except Exception as error:  # it is somebody else's code that is tried
            promise = (getdoc(check) or "").partition("\n")[0].rstrip(".")
            missing.append(f"{promise}: that ends with {type(error).__name__}: {error}")
    if missing:
        listed = "\n".join(f"- {sentence}" for sentence in dict.fromkeys(missing))
        article = "an" if word[0] in "aeiou" else "a"
        raise ContractError(f"{name} does not do all that {article} {word} must:\n{listed}")
