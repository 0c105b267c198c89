"""What a study is: everything that its runs have in common."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

from regaug._checks import check_choice, check_integer, check_range
from regaug._files import JSON
from regaug.exceptions import StoreError
from regaug.metrics import METRICS, MetricName

Search = Literal["random", "tpe"]
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
        splits: Number of splits.
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
        checksum: Differs for other rows.
        network: Differs for another network; empty for the table net.
        reference: The method that the others are compared with.
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
    checksum: str = ""
    network: str = ""
    reference: str = REFERENCE

    def __post_init__(self) -> None:
        check_integer("trials", self.trials, 1)
        check_integer("splits", self.splits, 1)
        check_integer("recipes", self.recipes, 0)
        check_integer("seed", self.seed, 0)
        check_choice("metric", self.metric, tuple(METRICS))
        check_choice("search", self.search, get_args(Search))
        check_range("test_share", self.test_share, 0.0)

    @property
    def targets(self) -> int:
        """Number of targets."""
        return len(self.target_names)

    def to_dict(self) -> dict[str, JSON]:
        """Return plain values, for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the configuration that :meth:`to_dict` wrote down."""
        names = {part.name for part in fields(cls)}
        if set(values) != names:
            differ = f"{', '.join(sorted(set(values) ^ names)[:4])} differ"
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
        lists = ("methods", "baselines", "hidden", "target_names")
        return cls(**{**values, **{name: tuple(values[name]) for name in lists}})
