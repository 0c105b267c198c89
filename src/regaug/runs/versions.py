"""What a worker is made of: results of another regaug are not mixed in, other versions are said."""

import socket
from collections.abc import Mapping

from regaug.exceptions import RegaugError, StoreError
from regaug.runs.store import Store
from regaug.training.results import versions

# What is compared, under the names that pip knows.
_NAMES = {"regaug": "regaug", "torch": "torch", "sklearn": "scikit-learn"}


def own_versions() -> dict[str, str]:
    """Return the versions of what a worker computes with, in this process."""
    known = versions()
    return {name: known[name] for name in _NAMES}


def check_worker(theirs: Mapping[str, str], ours: Mapping[str, str], host: str) -> None:
    """Refuse a worker whose regaug is another one."""
    if theirs["regaug"] != ours["regaug"]:
        raise RegaugError(
            f"A worker on {host} has regaug {theirs['regaug']}, and this is regaug "
            f"{ours['regaug']} on {socket.gethostname()}: two versions do not work on one study. "
            f'Install the same there: pip install "regaug=={ours["regaug"]}".'
        )


def say_worker(theirs: Mapping[str, str], ours: Mapping[str, str], host: str) -> str:
    """Return what else differs of a worker, as a sentence; empty if nothing does."""
    return _say(theirs, ours, f"A worker on {host} has")


def check_store(store: Store) -> list[str]:
    """Refuse to go on with a study of another regaug; return what else differs, in sentences."""
    ours = own_versions()
    if store.version != ours["regaug"]:
        raise StoreError(
            f"The study in {store.folder} was begun by regaug {store.version}, and this is regaug "
            f"{ours['regaug']}: two versions do not work on one study. Use the version that began "
            "it, or give another folder (--out)."
        )
    found: dict[str, None] = {}
    for host, record in store.written():
        theirs = {"regaug": ours["regaug"], **record.made_by}
        check_worker(theirs, ours, host)
        found[_say(theirs, ours, f"Some runs were made on {host} with")] = None
    return [sentence for sentence in found if sentence]


def _say(theirs: Mapping[str, str], ours: Mapping[str, str], begin: str) -> str:
    differ = [
        f"{title} {theirs[name]} (here {ours[name]})"
        for name, title in _NAMES.items()
        if name in theirs and theirs[name] != ours[name]
    ]
    if not differ:
        return ""
    return f"{begin} {', '.join(differ)}: its results may differ in the last digits."
