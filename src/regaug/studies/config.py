"""What a study is: everything that its runs have in common."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from regaug._checks import check_choice, check_integer, check_range
from regaug._files import JSON, entry
from regaug.exceptions import StoreError
from regaug.methods import INPUT, LAYER, Reach
from regaug.metrics import MetricName, check_metric
from regaug.problems import Kind

Search = Literal["random", "tpe"]
Fair = Literal["epochs", "time"]
REFERENCE = "erm"
# What the configuration of a study has had in every version.
_ALWAYS = {"problem", "methods", "baselines", "trials", "splits", "metric", "test_share"}


@dataclass(frozen=True)
class StudyConfig:
    """What makes a study what it is; two studies that differ in it are never mixed.

    Attributes:
        problem: Name of the problem.
        methods: The methods, plain training among them.
        baselines: What stands beside them.
        trials: Settings that are tried of every method, on every split.
        splits: Number of splits, or of repetitions of a single one.
        metric: The error that chooses and is compared.
        test_share: Test rows per row that made the model, validation rows included.
        independent: Whether the splits have no rows in common.
        search: How settings are found.
        seed: Decides settings and runs.
        recipes: Recipes that plain training is tried with first; 0 if there is no such stage.
        recipe: Differs for other recipes, or other settings that were given instead.
        hidden: Widths of the hidden layers of the table net; empty for another network.
        rows: Rows of the data.
        train_rows: Fewest training rows of a split, which settings must suit.
        columns: Inputs of a row.
        target_names: Names of the targets.
        places: Where methods can act: ``"input"``, and the layers that are named, ``"layer"`` for
            those of the table net.
        pairs_pass: Whether all of a sample goes through these layers.
        checksum: Differs for other rows.
        network: Differs for another network; empty for the table net.
        reference: The method that the others are compared with.
        kind: What is trained: ``"table"``, ``"network"``, ``"estimator"`` or ``"lightning"``.
        model: Name of a regressor, with what differs for other parameters of it; else empty.
        keep_integers: Whether columns of whole numbers stay such in new rows for a regressor.
        repeats: How often a single split is repeated, with other seeds; 1 if the splits differ.
        epochs: Epochs of every method's trainings, for a network of one's own; otherwise its
            recipes say how long they are, and this is empty.
        fair: What every method gets the same of.
        categories: Whether columns of the inputs belong together, as those of a category do.
        rungs: Epochs after which the worse half of the recipes ends, for a network of one's own.
    """

    problem: str
    methods: tuple[str, ...]
    baselines: tuple[str, ...]
    trials: int
    splits: int
    metric: MetricName
    test_share: float
    independent: bool = False
    search: Search = "random"
    seed: int = 0
    recipes: int = 0
    recipe: str = ""
    hidden: tuple[int, ...] = ()
    rows: int = 0
    train_rows: int = 0
    columns: int = 0
    target_names: tuple[str, ...] = ("target",)
    places: tuple[str, ...] = (INPUT, LAYER)
    pairs_pass: bool = True
    checksum: str = ""
    network: str = ""
    reference: str = REFERENCE
    kind: Kind = "table"
    model: str = ""
    keep_integers: bool = False
    repeats: int = 1
    epochs: tuple[int, ...] = ()
    fair: Fair = "epochs"
    rungs: tuple[int, ...] = ()
    categories: bool = False

    def __post_init__(self) -> None:
        check_integer("trials", self.trials, 1)
        check_integer("splits", self.splits, 1)
        check_integer("recipes", self.recipes, 0)
        check_integer("seed", self.seed, 0)
        check_metric(self.metric)
        check_choice("search", self.search, get_args(Search))
        check_choice("kind", self.kind, get_args(Kind))
        check_range("test_share", self.test_share, 0.0)
        check_integer("repeats", self.repeats, 1)
        check_choice("fair", self.fair, get_args(Fair))
        for number in (*self.epochs, *self.rungs):
            check_integer("epochs", number, 1)

    @property
    def is_repeated(self) -> bool:
        """Whether a single split is repeated with other seeds."""
        return self.repeats > 1

    @property
    def targets(self) -> int:
        """Number of targets."""
        return len(self.target_names)

    @property
    def beside(self) -> tuple[str, ...] | None:
        """What can teach, as its own error is known; None where rows are not ours to know."""
        return None if self.kind == "lightning" else (*self.baselines, self.model)

    @property
    def reach(self) -> Reach:
        """Where methods can act."""
        layers = bool(set(self.places) - {INPUT})
        return Reach(INPUT in self.places, layers, self.pairs_pass, self.categories)

    def to_dict(self) -> dict[str, JSON]:
        """Return plain values, for a JSON file."""
        # Studies of tables are the same as before there were others.
        plain = asdict(self)
        return {name: v for name, v in plain.items() if name not in NEWER or v != NEWER[name]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the configuration that :meth:`to_dict` wrote down."""
        names = {part.name for part in fields(cls)}
        if {*values, *NEWER} != names:
            differ = f"{', '.join(sorted({*values, *NEWER} ^ names)[:4])} differ"
            if set(values) >= _ALWAYS:
                raise StoreError(
                    f"The folder holds a study of another version of regaug: {differ}. Run "
                    "`regaug compare` with another folder (--out), or delete that one to start "
                    "anew; the version that wrote it can still read it."
                )
            raise StoreError(
                f"The folder holds runs of something else than a study: {differ}. Name the folder "
                "that `regaug compare` has written."
            )
        known, hints = {**NEWER, **values}, get_type_hints(cls)
        return cls(**{name: _typed(name, known[name], hints[name]) for name in names})


def _typed(name: str, value: object, hint: Any) -> Any:
    """Return what a file says if it is of the type that the attribute has."""
    if get_origin(hint) is tuple:
        items = entry({name: list(value) if isinstance(value, tuple) else value}, name, list)
        return tuple(_typed(name, item, get_args(hint)[0]) for item in items)
    if hint is float and type(value) is int:
        return value
    return entry({name: value}, name, hint if isinstance(hint, type) else str)


# What a configuration does not say where it is so: earlier ones knew nothing else.
NEWER: Mapping[str, JSON] = {
    "repeats": 1,
    "epochs": (),
    "fair": "epochs",
    "rungs": (),
    "categories": False,
}
