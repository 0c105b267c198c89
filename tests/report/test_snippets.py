"""The settings of a network's study as code: every snippet is run."""

from dataclasses import replace
from types import MethodType

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from regaug import methods
from regaug.report.page import render
from regaug.report.snippets import (
    is_of_network,
    kept_nets,
    lightning_recipe,
    loop_recipe,
    weights_recipe,
)
from regaug.runs.nets import net_file, write_net
from regaug.studies.facts import Facts
from regaug.training.settings import Settings

# A way to train, by name: what differs from the method's defaults, and from a plain recipe.
WAYS = {
    "inputs": ("mixup", {}, {}),
    "pairs": ("c-mixup", {"p": 0.5}, {"schedule": "cosine"}),
    "layer": ("foma-rho", {"place": "layer", "lam_range": (0.0, 0.3)}, {"clip": 1.0}),
    "layers": ("manifold-mixup", {}, {"schedule": "waves", "optimizer": "adam"}),
    "both": ("foma", {"place": "both", "k": 2}, {"schedule": "cosine", "patience": 5}),
    "learns": ("ada", {"clusters": 4}, {}),
    "named": ("noise", {"place": "first"}, {}),
}
FACTS = Facts(
    summary="",
    rows={"train": 40, "validation": 10, "test": 10},
    columns=6,
    targets=1,
    kind="network",
    places=("second", "first"),
)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 5), nn.Linear(5, 1)

    def forward(self, x):
        return self.second(self.first(x.flatten(1)).tanh())


@pytest.fixture
def make(make_study):
    """Make a study in which a method was trained in some way."""

    def make(way, **more):
        method, own, recipe = WAYS[way]

        def give(record):
            run = record.run
            if run.is_baseline:
                return record
            ours = methods.get(run.method).settings(**(own if run.method == method else {}))
            settings = Settings(
                epochs=3, batch_size=16, learning_rate=0.0123456789, method_settings=ours, **recipe
            )
            return replace(record, run=replace(run, settings=settings))

        names = ("erm", method)
        return method, make_study(methods=names, hidden=(), facts=FACTS, change=give, **more)

    return make


def make_rows():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 2, 3, generator=generator)
    return x, x.flatten(1).sum(1, keepdim=True)


@pytest.mark.parametrize("way", WAYS)
def test_the_loop_trains_with_the_settings_of_the_study(make, way):
    method, study = make(way)
    x, y = make_rows()
    net = Net()
    before = {name: own.clone() for name, own in net.state_dict().items()}
    found = {"net": net, "x": x, "y": y}
    exec(loop_recipe(study, method), found)
    assert all(not torch.equal(own, before[name]) for name, own in net.state_dict().items())
    assert found["loss"].isfinite()
    ready, own = found["ready"], study.settings_of(method)
    ours = {name: v for name, v in own.method_settings.items() if name != "place"}
    assert {name: ready.settings[name] for name in ours} == ours
    assert ready.augmentation.progress == pytest.approx((2 + 1 / 2) / 3)
    assert found["optimizer"].defaults["lr"] == pytest.approx(own.learning_rate, rel=1e-5)
    place = own.method_settings["place"]
    assert ("acting" in found) == (place != "input")
    if place == "layers":
        assert found["acting"].place in FACTS.places
    elif "acting" in found:
        assert found["acting"].place == ("first" if way == "named" else "second")
    last = found["optimizer"].param_groups[0]["lr"]
    assert (last < 1e-9) == (own.schedule != "constant")


@pytest.mark.parametrize("way", WAYS)
def test_lightning_trains_with_them_too(make, way, tmp_path, monkeypatch):
    lightning = pytest.importorskip("lightning.pytorch", reason='needs "regaug[lightning]"')
    monkeypatch.chdir(tmp_path)  # it writes logs and checkpoints

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()
            self.rates = []

        def training_step(self, batch, number):
            x, y = batch
            self.rates.append(self.optimizers().param_groups[0]["lr"])
            return nn.functional.mse_loss(self.net(x), y)

    method, study = make(way)
    script = lightning_recipe(study, method)
    start, sign, end = script.partition("# Yours")
    found = {}
    exec(start, found)
    module = Module()
    module.configure_optimizers = MethodType(found["configure_optimizers"], module)
    found |= {"module": module, "loader": DataLoader(TensorDataset(*make_rows()), batch_size=16)}
    before = {name: own.clone() for name, own in module.state_dict().items()}
    silent = "Trainer(accelerator='cpu', logger=False, enable_progress_bar=False, "
    quiet = (sign + end).replace("Trainer(", f"{silent}enable_checkpointing=False, ")
    exec(quiet, found)
    assert found["trainer"].current_epoch == 3
    assert all(not torch.equal(own, before[name]) for name, own in module.state_dict().items())
    own = study.settings_of(method)
    assert found["ready"].settings["sampler"] == own.method_settings["sampler"]
    assert max(module.rates) <= 0.0123457
    assert (len(set(module.rates)) > 1) == (own.schedule != "constant")
    assert found["trainer"].gradient_clip_val == own.clip


def test_digits_and_logarithms_are_as_in_the_study(make):
    method, study = make("inputs")
    assert "lr=0.0123457" in loop_recipe(study, method)
    assert "by its logarithm" not in loop_recipe(study, method)
    logs = {name: replace(run, log=True) for name, run in study.best.items()}
    study = replace(study, best=logs)
    for recipe in (loop_recipe, lightning_recipe):
        assert "# standardized, y by its logarithm" in recipe(study, method)


def test_more_rows_than_there_are_make_one_batch(make):
    method, study = make("inputs")
    few = replace(FACTS, rows={"train": 9, "validation": 3, "test": 3})
    assert "epochs, batch_size = 3, 9" in loop_recipe(replace(study, facts=few), method)


def test_a_study_of_tables_has_none_of_them(make_study):
    study = make_study()
    assert not is_of_network(study)
    for recipe in (loop_recipe, lightning_recipe, weights_recipe):
        assert recipe(study, "mixup") == ""
    assert kept_nets(study) == []


def test_the_page_has_them_and_offers_no_model_of_a_table(make, tmp_path):
    method, study = make("layer", splits=3)
    page = render(study)
    for word in ("loop-1", "lightning-1", "loop-2", "table-gaps"):
        assert f'id="{word}"' in page
    assert "regaug fit" not in page
    assert "What was done to the columns" not in page
    assert 'id="load-1"' not in page  # nobody has kept the weights
    assert 'id="table-nets"' not in page
    study = replace(study, folder=tmp_path)
    for name in study.looked_at:
        for record in study.chosen[name]:
            write_net(tmp_path, record.run, Net().state_dict())
    page = render(study)
    assert 'id="load-1"' in page
    assert len(kept_nets(study)) == 6
    for net in kept_nets(study):
        assert (tmp_path / net.file).is_file()
        assert net.file in page
    assert str(net_file(tmp_path, study.chosen[method][0].run)) in weights_recipe(study, method)
