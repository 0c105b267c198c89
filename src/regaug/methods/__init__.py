"""The table of methods: a sampler, an augmentation and a place under one name.

Adding a method is adding an entry to the table; :func:`register` does it from outside. Its settings
are one flat mapping: the options of its augmentation, the options its sampler takes, and two that
every method has, ``sampler`` and ``place``, because who shares a batch and where the method acts
are choices like any other.

Settings are meant for inputs and targets that have been standardized.
"""

from regaug._registry import Registry, lookup
from regaug.exceptions import ArgumentError, ArgumentTypeError, RegaugError
from regaug.methods.method import BOTH, INPUT, LAYER, LAYERS, SHARE, Method, Prepared, Reach
from regaug.methods.space import Between, OneOf, Options, Space
from regaug.methods.table import MAKERS, NO_ROWS, OWN, REPEATS, ROWS, SMOGN

__all__ = [
    "BOTH",
    "INPUT",
    "LAYER",
    "LAYERS",
    "MAKERS",
    "METHODS",
    "NO_ROWS",
    "REPEATS",
    "RESERVED",
    "ROWS",
    "SHARE",
    "SMOGN",
    "Between",
    "Method",
    "OneOf",
    "Options",
    "Prepared",
    "Reach",
    "Space",
    "get",
    "get_maker",
    "is_for_rare",
    "names",
    "register",
    "teachers_of",
    "usual",
]

# What the option `method` means beside the methods: the baselines, and what blends them with nets.
_BASELINES = ("auto", "nets", "mean", "last-value", "ridge", "boosting", "trees", "gp")
RESERVED = (*_BASELINES, *MAKERS)


def _check_method(name: str, method: Method) -> None:
    if not isinstance(method, Method):
        came = method.__name__ if isinstance(method, type) else type(method).__name__
        raise ArgumentTypeError(f"`method` must be a regaug.methods.Method, got {came}.")
    if name in RESERVED:
        raise ArgumentError(f"`name` must be a new one, got {name!r}, which is not a net's.")
    if missing := {"sampler", "place"} - method.defaults.keys():
        raise ArgumentError(
            f"`method` must have a default for {' and '.join(sorted(missing))}, such as "
            '{"sampler": "random", "place": "input"}, got none.'
        )


# All of them; the contract tests go through this table.
METHODS: Registry[Method] = Registry("method", "regaug.methods", OWN, check=_check_method)


def register(name: str, method: Method, *, replace: bool = False) -> None:
    """Make a method of your own known by a name, to everything that takes the name of a method.

    Worker processes know it too, if what it is made of is defined in a module that they can import:
    a file, not a notebook. A package makes its methods known in every process by entry points in
    the group ``regaug.methods``, each a :class:`Method` under its name.

    Args:
        name: Lower-case letters, digits and dashes.
        method: The method. :func:`regaug.testing.check_method` tells whether it does all it must.
        replace: Take the place of a method of that name; otherwise it is refused. What is
            registered once more as it is, is not.

    Example:
        >>> from regaug import GaussianNoise
        >>> start = {"sampler": "random", "place": "input", "sigma": 0.5}
        >>> big_noise = Method("add a lot of noise", GaussianNoise, start)
        >>> register("big-noise", big_noise)  # doctest: +SKIP
        >>> get("big-noise").prepare().augmentation.sigma  # doctest: +SKIP
        0.5
    """
    METHODS.register(name, method, replace=replace)


def names() -> tuple[str, ...]:
    """Return the names of all methods, those of installed packages and registered ones included.

    Example:
        >>> names()[:3], names()[-2:]
        (('erm', 'noise', 'mixup'), ('teacher-rows', 'rare'))
    """
    return tuple(METHODS)


def usual() -> tuple[str, ...]:
    """Return the names of the methods that a study tries when nobody says which.

    Example:
        >>> usual()
        ('erm', 'noise', 'mixup', 'manifold-mixup', 'c-mixup', 'ada', 'foma', 'foma-rho', 'cems')
    """
    return tuple(name for name in METHODS if _is_usual(name))


def _is_usual(name: str) -> bool:
    try:
        return METHODS[name].usual
    except RegaugError:  # one of a package that cannot be used: whoever asks for it is told
        return True


def is_for_rare(name: str) -> bool:
    """Tell whether what has this name is a method that is meant for rare targets.

    Example:
        >>> [name for name in (*names(), *MAKERS) if is_for_rare(name)]
        ['rare', 'smogn']
    """
    known = MAKERS if name in MAKERS else METHODS
    return name in known and known[name].for_rare


def teachers_of(name: str) -> tuple[str, ...]:
    """Return the baselines that may label the rows of the method called ``name``; none for most.

    Example:
        >>> teachers_of("teacher-rows"), teachers_of("mixup"), teachers_of("nets")
        (('boosting', 'trees', 'gp'), (), ())
    """
    return METHODS[name].teachers if name in METHODS else ()


def get(name: str) -> Method:
    """Return the method called ``name``.

    Example:
        >>> get("foma-rho").defaults["rho"]
        0.9
    """
    return lookup("method", name, METHODS)


def get_maker(name: str) -> Method:
    """Return the method called ``name`` as one that makes new rows of a table.

    ``"no-rows"`` makes none, ``"rows"`` takes those that were made elsewhere, ``"repeats"`` takes
    training rows once more, and ``"smogn"`` makes rows where targets are rare.

    Example:
        >>> get_maker("mixup").defaults["share"], get_maker("no-rows").defaults
        (0.5, {})
    """
    if name in MAKERS:
        return MAKERS[name]
    maker = get(name).as_maker()
    if maker is None:
        raise ArgumentError(
            f"`method` must make new rows, got {name!r}, which makes none. Choose another, such as "
            "'mixup' or 'cems'."
        )
    return maker
