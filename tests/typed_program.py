"""A user's program, for ``mypy --strict``: see test_typing.py. It is not run."""

from pathlib import Path
from typing import Any, assert_type

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import regaug
from regaug import (
    ADA,
    CEMS,
    FOMA,
    CMixup,
    Compose,
    GaussianNoise,
    Identity,
    KernelPairSampler,
    Mixup,
    NearestBatchSampler,
)
from regaug.augment import Augmentation
from regaug.augment.foma import FOMAParams
from regaug.augment.layer import AtLayer
from regaug.data import Split
from regaug.ensemble import Ensemble
from regaug.methods import Between, Method, Prepared
from regaug.samplers import BatchSampler
from regaug.studies.study import Study
from regaug.training import RunResult, Settings, fit, fit_many

x, y = torch.randn(64, 5), torch.randn(64, 1)
net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters())


def augmentations() -> None:
    """Every augmentation gives back what it takes."""
    augment = FOMA(rho=0.9, anneal=0.7, total_steps=100)
    assert_type(augment(x, y), tuple[Tensor, Tensor])
    new_x, _ = augment(x, y)
    assert_type(new_x, Tensor)
    assert_type(augment.params, FOMAParams)
    assert_type(augment.params.lam, float)
    assert_type(augment.progress, float)
    assert_type(augment.total_steps, int | None)
    assert_type(augment.draw(x, y), FOMAParams)
    assert_type(augment.transform(x, y, augment.params), tuple[Tensor, Tensor])
    assert_type(augment.fit(x, y), FOMA)
    assert_type(augment.eval(), FOMA)
    assert_type(Compose(Mixup(), GaussianNoise(0.1))(x, y), tuple[Tensor, Tensor])
    chosen: list[Augmentation[Any]] = [ADA().fit(x, y), CEMS(), CMixup(), Identity()]
    for one in chosen:
        assert_type(one(x, y), tuple[Tensor, Tensor])


def several_tensors() -> None:
    """A batch of several tensors comes back in its form."""
    parts, pair = {"image": x, "age": x}, (x, y)
    assert_type(Mixup()(parts, y), tuple[dict[str, Tensor], Tensor])
    assert_type(Mixup()(pair, {"y": y}), tuple[tuple[Tensor, Tensor], dict[str, Tensor]])
    _, targets = Mixup().at(net, "1")(x, {"level": y})
    assert_type(targets, dict[str, Tensor])


def at_a_layer() -> None:
    """At a layer the targets have their type; what a model returns is its own affair."""
    at = FOMA().at(net, ["0", "1"], output=0)
    assert_type(at, AtLayer[FOMAParams])
    prediction, new_y = at(x, y)
    assert_type(new_y, Tensor)
    assert_type(at.params.k, int)
    F.mse_loss(prediction, new_y)


def samplers() -> None:
    """Samplers give lists of indices."""
    sampler = NearestBatchSampler(y, 16, seed=0)
    for batch in sampler:
        assert_type(batch, list[int])
        Mixup()(x[batch], y[batch])
    sampler.set_epoch(3)
    sampler.load_state_dict(sampler.state_dict())
    rows = TensorDataset(x, y)
    DataLoader(rows, batch_sampler=KernelPairSampler(y, 8), collate_fn=Mixup().as_collate_fn())
    collate = Mixup().as_collate_fn(
        get=lambda batch: (batch["x"], batch["y"]), set=lambda batch, x, y: {"x": x, "y": y}
    )
    DataLoader(rows, 8, collate_fn=collate)


class Jitter(Augmentation[float]):
    """One of the user's own."""

    neutral = 1.0

    def draw(self, x: Tensor, y: Tensor) -> float:
        """Draw a factor."""
        return 1.0 + 0.1 * torch.rand((), generator=self.generator).item()

    def transform(self, x: Tensor, y: Tensor, params: float) -> tuple[Tensor, Tensor]:
        """Scale the batch."""
        return x * params, y * params


def methods() -> None:
    """Methods, the user's own among them."""
    start = {"sampler": "random", "place": "input", "p": 1.0}
    regaug.methods.register("jitter", Method("scale", Jitter, start, {"p": Between(0.05, 1.0)}))
    regaug.testing.check_augmentation(Jitter())
    regaug.testing.check_method("jitter")
    regaug.testing.check_sampler(NearestBatchSampler)
    ready = regaug.methods.get("c-mixup").prepare({"alpha": 2.0}, seed=1).fit(x, y)
    assert_type(ready, Prepared)
    assert_type(ready.sampler(y, 16), BatchSampler)
    assert_type(ready.augmentation(x, y), tuple[Tensor, Tensor])
    assert_type(regaug.methods.names(), tuple[str, ...])


def studies() -> None:
    """Data, trainings, models and studies."""
    data = regaug.data.load("diabetes")
    split = regaug.data.standardize(data.split(seed=0))
    settings = Settings(epochs=5, method_settings={"rho": 0.95})
    assert_type(fit(net, split, "foma-rho", settings), RunResult)
    assert_type(fit_many(split, "mixup", [settings]), list[RunResult])
    model = regaug.fit(data, method="foma-rho")
    assert_type(model, Ensemble)
    assert_type(model.predict([[0.5] * 10], interval=0.9).mean, Tensor)
    problem = regaug.Problem([data.split(seed) for seed in range(3)], model=lambda split: net)
    own = regaug.data.split_dataset((x, y), seeds=3, inputs=None)
    assert_type(own, list[Split])
    given = Split((x, y), (x, y), TensorDataset(x, y))
    regaug.Problem([given], lambda split: net, places=["1"], inputs=lambda sample: sample[0])
    assert_type(regaug.data.Part.of(TensorDataset(x, y)).y, Tensor)
    study = regaug.compare(problem, methods=["mixup"], trials=2, out=Path("runs"))
    assert_type(study, Study)
    assert_type(study.verdict.text, str)


def mistakes() -> None:
    """What is wrong is an error: an ignored one that is none would be an error itself."""
    augment = FOMA()
    augment(x)  # type: ignore[call-arg]
    augment(x, 3)  # type: ignore[type-var]
    augment(x, y, y)  # type: ignore[call-arg]
    FOMA(rho="much")  # type: ignore[arg-type]
    FOMA(scale="both")  # type: ignore[arg-type]
    augment.at("net", "1")  # type: ignore[arg-type]
    NearestBatchSampler(y, 16, 0)  # type: ignore[call-arg]
    regaug.methods.register("jitter", Jitter)  # type: ignore[arg-type]
