"""Data sets by name: what they are, what they need, and who loads them.

Adding one is adding an entry to the table. A loader is named by a string, so that a listing imports
none of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from pathlib import Path

from regaug._registry import lookup
from regaug.data.base import Data, Info
from regaug.data.datasets.facts import FACTS
from regaug.data.datasets.files import FILES, by_hand, locate
from regaug.exceptions import DataNotFoundError


@dataclass(frozen=True)
class Named:
    """A data set that has a name.

    Attributes:
        info: Its facts.
        loader: ``"module:function"`` in ``regaug.data.datasets``; the function returns the data.
        needs: Files or folders that it is read from, as :func:`~regaug.data.datasets.files.locate`
            takes them; none if it needs no file.
        options: What the loader is always called with.
        note: A remark for a listing.
    """

    info: Info
    loader: str
    needs: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    note: str = ""


def _synthetic(kind: str, what: str) -> Named:
    info = Info(
        name=f"synthetic-{kind}",
        task="table",
        metric="rmse",
        split="Rows at random by the seed, 60 / 20 / 20 %.",
        license="none needed: generated",
        origin=what,
    )
    note = "made when it is asked for"
    return Named(info, "synthetic:make_manifold", options={"kind": kind}, note=note)


_ALL = (
    Named(
        FACTS["diabetes"],
        "tables:load_diabetes",
        note="comes with scikit-learn",
    ),
    Named(
        FACTS["airfoil"],
        "tables:load_airfoil",
        ("airfoil/airfoil_self_noise.dat",),
    ),
    Named(
        FACTS["no2"],
        "tables:load_no2",
        ("no2/547_no2.tsv.gz",),
    ),
    Named(
        FACTS["crimes"],
        "tables:load_crimes",
        ("crimes/communities.data",),
    ),
    Named(
        FACTS["skillcraft"],
        "tables:load_skillcraft",
        ("skillcraft/SkillCraft1_Dataset.csv",),
    ),
    Named(
        FACTS["exchange-rate"],
        "series:load_exchange_rate",
        ("exchange_rate/exchange_rate.txt.gz",),
    ),
    Named(
        FACTS["electricity"],
        "series:load_electricity",
        ("electricity/electricity.txt.gz",),
    ),
    Named(
        FACTS["etth1"],
        "series:load_etth1",
        ("etth1/ETTh1.csv",),
    ),
    Named(
        FACTS["rcf-mnist"],
        "rcf_mnist:load_rcf_mnist",
        ("fashion_mnist/train-images-idx3-ubyte.gz",),
        note="on Debian also: apt-get install dataset-fashion-mnist",
    ),
    Named(
        FACTS["povertymap"],
        "povertymap:load_povertymap",
        ("poverty_v1.1",),
    ),
    Named(
        FACTS["dti"],
        "dti:load_dti",
        ("dti_dg_group/bindingdb_patent",),
    ),
    Named(
        FACTS["davis"],
        "pairs:load_davis",
        ("dti_davis",),
        note="stands in for dti",
    ),
    Named(
        FACTS["kiba"],
        "pairs:load_kiba",
        ("dti_kiba",),
        note="stands in for dti",
    ),
    Named(
        FACTS["echo"],
        "video:load_echo",
        ("echonet",),
    ),
    _synthetic("line", "a straight line"),
    _synthetic("circle", "a circle"),
    _synthetic("sine", "a sine wave"),
    _synthetic("swiss-roll", "a sheet rolled up in three dimensions"),
    _synthetic("sphere", "the surface of a ball"),
    _synthetic("paraboloid", "a bowl"),
    _synthetic("plane", "a linear subspace of 40 columns"),
)

DATASETS: Mapping[str, Named] = {named.info.name: named for named in _ALL}
NAMES = tuple(DATASETS)


def load(name: str, **options: object) -> Data:
    """Load a data set by its name; its files are fetched if they are not here and can be.

    Args:
        name: One of ``NAMES``.
        options: Options of its loader, such as ``fold="B"`` of povertymap, ``path=...``, or ``n``,
            ``noise`` and ``seed`` of the synthetic ones.

    Example:
        >>> data = load("synthetic-sine", n=100)
        >>> len(data), len(data.split(seed=0).train)
        (100, 60)
    """
    named = _lookup(name)
    module, _, function = named.loader.partition(":")
    loader: Callable[..., Data] = getattr(import_module(f"regaug.data.datasets.{module}"), function)
    known = {key: None for key in signature(loader).parameters if key not in named.options}
    for option in options:
        lookup(f"option of {name}", option, known)
    return loader(**named.options, **options)


def info(name: str) -> Info:
    """Return the facts about a data set; its files need not be here.

    Example:
        >>> info("crimes").groups
        'state'
    """
    return _lookup(name).info


def where(name: str) -> Path | None:
    """Return the file or folder a data set is read from, None if it is not on this disk.

    None also for those that need no file: see :func:`is_here`.
    """
    try:
        paths = [locate(needed, fetch=False) for needed in _lookup(name).needs]
    except DataNotFoundError:
        return None
    return paths[0] if paths else None


def is_here(name: str) -> bool:
    """Whether a data set can be loaded without a download."""
    return not _lookup(name).needs or where(name) is not None


def fetch(name: str) -> list[Path]:
    """Fetch what a data set needs and is not here; return the paths of all it needs.

    One that cannot be fetched raises an error that says how to get it by hand.
    """
    return [locate(needed) for needed in _lookup(name).needs]


def how(name: str) -> str:
    """Say in a sentence how a data set is got."""
    named = _lookup(name)
    ways = [named.note] if named.note else []
    if named.needs:
        can_fetch = all(_can_fetch(needed) for needed in named.needs)
        ways.insert(0, f"regaug data fetch {name}" if can_fetch else by_hand(named.needs[0]))
    return "; ".join(ways)


def _lookup(name: str) -> Named:
    return lookup("data set", name, DATASETS)


def _can_fetch(relative: str) -> bool:
    return any(
        file.address and (known == relative or known.startswith(relative + "/"))
        for known, file in FILES.items()
    )
