"""Studies of a LightningModule: what is trained, what is read, and what is refused at once."""

import math
import pickle
import subprocess
import sys
from functools import partial

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

pytest.importorskip("lightning")
pytest.importorskip("pytorch_lightning")

import lightning.pytorch as pl
import pytorch_lightning
from lightning.pytorch.callbacks import EarlyStopping

import regaug
from regaug import Problem, _random
from regaug.exceptions import ArgumentError, ArgumentTypeError, NonFiniteError
from regaug.integrations.lightning.inspection import name_at_test
from regaug.integrations.lightning.sessions import quiet, run_trainer, seeded
from regaug.report.recipe import net_recipe
from regaug.runs.worker import Worker
from regaug.studies.plan import make_plan
from regaug.training.settings import Settings

BATCH = 16


class Steps:
    """A module as Lightning's documentation writes them."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 8), nn.ReLU())
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x))

    def loss_of(self, batch):
        return F.mse_loss(self(batch[0]), batch[1])

    def training_step(self, batch, batch_idx):
        return self.loss_of(batch)

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.loss_of(batch))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class WithTestStep(Steps):
    def test_step(self, batch, batch_idx):
        self.log("test_loss", self.loss_of(batch))


class Module(WithTestStep, pl.LightningModule):
    pass


class OtherModule(WithTestStep, pytorch_lightning.LightningModule):
    pass


class WithoutTestStep(Steps, pl.LightningModule):
    pass


def make_rows(n, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=generator)
    return x, x[:, :1].sin() + 0.1 * torch.randn(n, 1, generator=generator)


class Loaders:
    def __init__(self, split=0):
        super().__init__()
        self.split = split

    def loader(self, n, number, **options):
        rows = TensorDataset(*make_rows(n, 10 * self.split + number))
        return DataLoader(rows, **{"batch_size": BATCH, **options})

    def train_dataloader(self):
        return self.loader(48, 0, shuffle=True)

    def val_dataloader(self):
        return self.loader(20, 1)

    def test_dataloader(self):
        return self.loader(24, 2)


class Data(Loaders, pl.LightningDataModule):
    pass


class OtherData(Loaders, pytorch_lightning.LightningDataModule):
    pass


class Untested(pl.LightningDataModule):
    train_dataloader, val_dataloader = Loaders.train_dataloader, Loaders.val_dataloader
    loader, split = Loaders.loader, 0


def make_problem(module=Module, data=Data, **options):
    return Problem.from_lightning(module, data, **{"epochs": 2, "splits": 2, **options})


def change(base=Module, **members):
    """A module like another one, of which something is different."""
    return type("Changed", (base,), members)


def train(problem, method="erm", split=0, **settings):
    known = {"epochs": problem.lightning.epochs, "seed": 3, **settings}
    return problem.lightning.train(split, method, Settings(**known))


@pytest.fixture(scope="module")
def problem():
    return make_problem(places=["body"])


# What is trained


def test_plain_training_is_what_their_trainer_does():
    problem = make_problem()
    with quiet(), seeded(3):
        with _random.seeded(3):
            module = Module()
        trainer = pl.Trainer(
            max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
        )  # fmt: skip
        trainer.fit(module, datamodule=Data(1))
        value = float(trainer.callback_metrics["val_loss"])
        (tested,) = trainer.test(module, datamodule=Data(1), verbose=False)
    result = train(problem, split=1)
    assert (result.history[-1], result.epochs, result.ending) == (value, 2, "finished")
    assert (result.best_epoch, result.test) == (2, tested["test_loss"])
    for name, weight in module.state_dict().items():
        torch.testing.assert_close(result.weights[name], weight, rtol=0, atol=0)


def test_the_seed_and_the_split_decide_everything(problem):
    values = [
        train(problem, "mixup", seed=seed, split=split).test
        for seed, split in ((1, 0), (1, 0), (2, 0), (1, 1))
    ]
    assert values[0] == values[1]
    assert len(set(values)) == 3


def test_the_train_loader_stays_theirs_unless_a_method_has_batches_of_its_own(problem):
    def samplers(method, **own):
        callbacks = problem.lightning.make_callbacks(method, Settings(method_settings=own))
        return [callback.sampler is None for callback in callbacks]

    assert samplers("erm") == []
    assert samplers("mixup") == [True]
    assert samplers("foma-rho", sampler="random") == [True]
    assert samplers("foma-rho") == samplers("c-mixup") == [False]


def test_a_method_trains_otherwise_and_nothing_global_moves(problem):
    states = torch.get_rng_state()
    plain, mixed = train(problem), train(problem, "mixup")
    layer = train(problem, "foma-rho", method_settings={"place": "body", "sampler": "random"})
    assert len({plain.test, mixed.test, layer.test}) == 3
    assert torch.equal(torch.get_rng_state(), states)


@pytest.mark.parametrize("mode", ["min", "max"])
def test_the_weights_of_the_best_epoch_are_tested(mode):
    class Scripted(Module):
        def validation_step(self, batch, batch_idx):
            self.log("val_loss", {"min": [2.0, 1.0, 3.0], "max": [2.0, 5.0, 3.0]}[mode][self.epoch])

        def test_step(self, batch, batch_idx):
            self.log("test_loss", self.weights)

        @property
        def epoch(self):
            return self.current_epoch if self.trainer.state.fn == "fit" else 0

        @property
        def weights(self):
            return sum(weight.detach().sum() for weight in self.parameters())

        def on_train_epoch_end(self):
            seen.append(float(self.weights))

    seen = []
    problem = make_problem(Scripted, mode=mode, epochs=3)
    problem.lightning.facts  # noqa: B018 - a look trains too
    seen.clear()
    result = train(problem)
    assert result.best_epoch == 2
    assert result.test == pytest.approx(seen[1])
    assert result.validation == result.history[1] == {"min": 1.0, "max": 5.0}[mode]


def test_a_training_that_diverges_is_a_finding(problem):
    def validation_step(self, batch, batch_idx):
        is_look = self.trainer.max_epochs == 1 or self.trainer.state.fn != "fit"
        self.log("val_loss", torch.tensor(1.0 if is_look else math.nan))

    result = train(make_problem(change(validation_step=validation_step)))
    assert (result.ending, result.best_epoch) == ("diverged", 0)
    assert math.isnan(result.test)


def test_their_own_callbacks_act():
    def configure_callbacks(self):
        return [EarlyStopping("val_loss", patience=1, min_delta=100.0)]

    result = train(make_problem(change(configure_callbacks=configure_callbacks), epochs=9))
    assert (result.ending, result.epochs) == ("early", 2)


def test_manual_optimization_works():
    class Manual(Module):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch, batch_idx):
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(self.loss_of(batch))
            optimizer.step()

    problem = make_problem(Manual, places=["body"])
    names, sentences = problem.lightning.leave_out(["erm", "mixup", "manifold-mixup"])
    assert (names, sentences) == (("erm", "mixup", "manifold-mixup"), [])
    assert train(problem).test != train(problem, "mixup").test
    assert train(problem).test == train(make_problem()).test


def test_the_other_package_works_too():
    problem = make_problem(OtherModule, OtherData)
    plain, ours = train(problem, "mixup"), train(make_problem(), "mixup")
    assert plain.test == ours.test
    assert {"pytorch_lightning"} == plain.made_by.keys() - ours.made_by.keys()


# What is read


def test_the_facts_are_those_of_the_loaders(problem):
    facts = problem.lightning.facts
    assert (facts.sizes, facts.inputs, facts.targets) == ((48, 20, 24), (3,), 1)
    assert (facts.batch_size, facts.judged_by, facts.has_test) == (BATCH, "test_loss", True)
    assert facts.step_seconds > 0
    assert [len(part) for part in problem.splits[1].parts.values()] == [48, 20, 24]


@pytest.mark.parametrize(
    ("monitor", "name"),
    [("val_loss", "test_loss"), ("val/mae", "test/mae"), ("validation_r2", "test_r2"),
     ("valid-loss", "test-loss"), ("value", "value"), ("loss", "loss")],
)  # fmt: skip
def test_the_test_is_expected_to_log_the_like(monitor, name):
    assert name_at_test(monitor) == name


def test_a_module_without_a_test_step_is_validated_on_the_test_rows():
    problem = make_problem(WithoutTestStep)
    facts = problem.lightning.facts
    assert (facts.judged_by, facts.has_test, facts.sizes) == ("val_loss", True, (48, 20, 24))
    assert "no test_step: val_loss of its validation step on the test rows" in facts.notes[0]
    result = train(problem)
    assert result.test == pytest.approx(train(make_problem()).test, rel=1e-6)
    assert result.test != result.validation


def test_without_a_test_loader_validation_rows_judge_one_setting_of_each():
    problem = make_problem(data=Untested)
    plan = make_plan(problem, methods=["mixup"])
    assert (plan.config.metric, plan.config.trials) == ("min:val_loss", 1)
    assert any("no test_dataloader: val_loss of the validation rows" in n for n in plan.notes)
    result = train(problem)
    assert result.test == result.validation
    with pytest.raises(ArgumentError, match="`trials` must be 1 where no test rows judge"):
        make_plan(problem, trials=2)
    with pytest.raises(ArgumentError, match="`test_metric` must be None without test rows"):
        make_plan(make_problem(data=Untested, test_metric="test_loss"))


def test_another_test_metric_can_be_named():
    def test_step(self, batch, batch_idx):
        self.log("error", self.loss_of(batch))

    own = change(test_step=test_step)
    with pytest.raises(ArgumentError, match="`test_metric` must be a metric that the test step"):
        make_plan(make_problem(own))
    plan = make_plan(make_problem(own, test_metric="error"), methods=["noise"])
    assert plan.config.metric == "min:error"


def test_without_a_split_argument_all_runs_have_the_same_rows():
    fixed, other = make_problem(data=partial(Data, 3)), make_problem()
    assert (fixed.lightning.varies, other.lightning.varies) == (False, True)
    plans = [make_plan(own, methods=["noise"]) for own in (fixed, other)]
    assert [own.config.is_repeated for own in plans] == [True, False]
    assert "intervals say how much seeds vary" in fixed.notes[0]
    assert train(fixed, split=0).test == train(fixed, split=1).test
    assert train(fixed, split=0, seed=1).test != train(fixed, split=0, seed=2).test


def test_a_module_may_know_its_seed():
    seeds = []

    def make(seed):
        seeds.append(seed)
        return Module()

    train(make_problem(make), seed=7)
    assert seeds[0] == 7


def test_values_that_are_not_standardized_are_spoken_of():
    class Large(Data):
        def loader(self, n, number, **options):
            x, y = make_rows(n, number)
            return DataLoader(TensorDataset(x, 1000 + 50 * y), batch_size=BATCH)

    notes = make_problem(data=Large).lightning.facts.notes
    assert any("The targets of the first batch have the mean" in note for note in notes)
    assert not any(note.startswith("The inputs") for note in notes)


def test_it_can_be_sent_to_another_process_with_what_is_known(problem):
    facts = problem.lightning.facts
    again = pickle.loads(pickle.dumps(problem))
    assert vars(again.lightning)["facts"] == facts
    assert train(again).test == train(problem).test


def test_more_epochs_are_asked_for_later(problem):
    longer = problem.with_epochs(5)
    assert (longer.lightning.epochs, problem.lightning.epochs) == (5, 2)
    assert len(longer.splits) == 2
    with pytest.raises(ArgumentError, match="`epochs`"):
        Problem.from_table(regaug.data.load("diabetes"), splits=1).with_epochs(3)


# What is left out


def test_without_places_nothing_acts_at_a_layer():
    plan = make_plan(make_problem(), trials=12)
    assert "manifold-mixup" not in plan.config.methods
    assert any("manifold-mixup is left out: it acts at a layer alone" in n for n in plan.notes)
    assert any("The module names no layer: give places" in note for note in plan.notes)
    places = {run.settings.method_settings["place"] for run in plan.runs}
    assert places == {"input"}


def test_with_places_the_settings_name_the_layers(problem):
    plan = make_plan(problem, trials=12)
    assert plan.config.methods == regaug.methods.usual()
    places = {
        name: {r.settings.method_settings["place"] for r in plan.runs if r.method == name}
        for name in plan.config.methods
    }
    assert places["manifold-mixup"] == {("body",)}
    assert places["foma-rho"] == {"input", "body"}
    assert places["c-mixup"] == {"input"}  # pairs are twice the rows
    assert {run.settings.epochs for run in plan.runs} == {2}
    assert {run.stage for run in plan.runs} == {"method"}
    assert (plan.config.recipes, plan.config.baselines) == (0, ())


def test_a_step_that_uses_targets_early_keeps_methods_at_the_inputs():
    def training_step(self, batch, batch_idx):
        x, y = batch
        scaled = 2 * y
        return F.mse_loss(2 * self(x), scaled)

    problem = make_problem(change(training_step=training_step), places=["body"])
    names, sentences = problem.lightning.leave_out(["erm", "mixup", "manifold-mixup"])
    assert names == ("erm", "mixup")
    assert "Methods act on the inputs alone. The training step computes" in sentences[0]
    assert problem.lightning.adapt({"place": "layer", "sampler": "random"})["place"] == "input"


def test_a_stream_of_rows_has_no_samplers_of_ours():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(zip(*make_rows(48, 0), strict=True))

    class Streamed(Data):
        def train_dataloader(self):
            return DataLoader(Stream(), batch_size=BATCH)

    problem = make_problem(data=Streamed)
    plan = make_plan(problem, methods=["c-mixup", "foma-rho"], trials=12)
    assert plan.config.methods == ("erm", "foma-rho")
    assert any("c-mixup is left out" in note and "by their index" in note for note in plan.notes)
    samplers = {run.settings.method_settings["sampler"] for run in plan.runs}
    assert samplers == {"random"}


def test_a_method_that_their_step_cannot_take_is_left_out():
    def training_step(self, batch, batch_idx):
        if not torch.isin(batch[1], make_rows(48, 0)[1]).all():
            raise ValueError("these are not my targets")
        return self.loss_of(batch)

    names, sentences = make_problem(change(training_step=training_step)).lightning.leave_out(
        ["erm", "mixup"]
    )
    assert names == ("erm",)
    assert "mixup is left out: the training step fails with it" in sentences[-1]
    assert "these are not my targets" in sentences[-1]
    with pytest.raises(ArgumentError, match="`methods` must have one that can act on the module"):
        make_plan(make_problem(change(training_step=training_step)), methods=["mixup"])


def test_a_batch_that_a_method_finds_infinite_is_a_run_that_diverged(problem, monkeypatch):
    plan = make_plan(problem, methods=["mixup"], trials=1)

    def train(*given):
        raise NonFiniteError("`x` must be finite.")

    monkeypatch.setattr(type(problem.lightning), "train", train)
    (record,) = Worker([plan.problem]).do((plan.runs[0],))
    assert (record.ending, record.scores) == ("diverged", {})


# What is refused before anything trains


class OptimizedModule(nn.Module):
    """What torch.compile returns is called so; making one takes seconds."""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"monitor": "val_los"}, "`monitor` must be a metric that validation logs, got 'val_los'"),
        ({"monitor": "val_los"}, "Did you mean 'val_loss'?"),
        ({"monitor": "train_loss"}, "Available: val_loss"),
        ({"module": change(validation_step=lambda self, batch, i: None)}, "logs nothing at all"),
        ({"places": ["bodi"]}, "`places` must name layers. Unknown layer 'bodi'. Did you mean"),
        ({"module": lambda: nn.Linear(3, 1)}, "must return a LightningModule, got a Linear"),
        ({"module": OptimizedModule}, "got a OptimizedModule. Methods act inside of the module"),
        ({"data": lambda: DataLoader([1])}, "must return a LightningDataModule, got a DataLoader"),
        ({"data": pl.LightningDataModule}, "with a train_dataloader, got one without"),
        ({"module": pl.LightningModule}, "with a validation_step, got one without"),
    ],
)
def test_what_cannot_work_is_an_error_before_a_study_begins(options, message):
    with pytest.raises((ArgumentError, ArgumentTypeError)) as caught:
        make_plan(make_problem(**options))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"module": Module()}, "`make_module` must be a function or a class that makes a fresh"),
        ({"data": Data()}, "`make_datamodule` must be a function or a class"),
        ({"mode": "low"}, "`mode` must be"),
        ({"monitor": ""}, "`monitor` must be the name of a metric"),
        ({"epochs": 0}, "`epochs` must be"),
        ({"splits": 0}, "`count` must be|`splits` must be"),
        ({"places": "body"}, "`places` must be a list of names, got 'body'"),
        ({"get": lambda batch: batch}, "`get` and `set` go together"),
        ({"trainer_options": {"max_epochs": 3}}, "must leave max_epochs to the study"),
        ({"trainer_options": {"callbacks": []}}, "configure_callbacks"),
    ],
)
def test_wrong_arguments_are_refused_at_once(options, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        make_problem(**options)


def test_batches_of_another_form_need_get_and_set():
    class Named(Data):
        def loader(self, n, number, **options):
            x, y = make_rows(n, number)
            rows = [{"x": x[i], "y": y[i]} for i in range(n)]
            return DataLoader(rows, batch_size=BATCH)

    def loss_of(self, batch):
        return F.mse_loss(self(batch["x"]), batch["y"])

    module = change(loss_of=loss_of)
    with pytest.raises(ArgumentTypeError, match=r"Problem.from_lightning\(..., get=lambda batch"):
        make_plan(make_problem(module, Named))
    problem = make_problem(
        module,
        Named,
        get=lambda batch: (batch["x"], batch["y"]),
        set=lambda batch, x, y: {**batch, "x": x, "y": y},
    )
    assert make_plan(problem, methods=["mixup"]).config.methods == ("erm", "mixup")
    assert train(problem).test != train(problem, "mixup").test


def test_a_search_that_learns_is_refused(problem):
    with pytest.raises(ArgumentError, match="`search` must be 'random'"):
        make_plan(problem, search="tpe")


def test_their_error_is_theirs():
    def training_step(self, batch, batch_idx):
        raise ValueError("my own mistake")

    with pytest.raises(ValueError, match="my own mistake"):
        make_plan(make_problem(change(training_step=training_step)))


def test_a_second_ctrl_c_does_not_end_the_process():
    def fit():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            sys.exit(1)  # as Lightning does

    with pytest.raises(KeyboardInterrupt):
        run_trainer(fit)
    with pytest.raises(SystemExit):
        run_trainer(sys.exit, 3)


def test_problems_do_not_import_lightning(fresh):
    code = (
        "import sys, regaug.problems; print({'lightning', 'pytorch_lightning'} & set(sys.modules))"
    )
    assert fresh(code) == "set()"


# The study


@pytest.fixture(scope="module")
def study(problem, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    return regaug.compare(problem, methods=["mixup", "foma-rho"], trials=2, out=out)


def test_a_study_compares_what_the_test_logs(study, problem):
    assert (study.comparison.title, study.comparison.metric) == ("test_loss", "min:test_loss")
    record = study.chosen["mixup"][1]
    again = problem.lightning.train(1, "mixup", record.run.settings)
    assert record.score("test", "min:test_loss") == again.test
    assert record.score("validation", "min:test_loss") == again.validation
    assert len(record.curves["validation"]) == record.epochs == 2
    assert record.made_by["lightning"]
    assert study.folder.name.endswith("min-test_loss")
    assert study.is_complete
    assert study.verdict.text


def test_a_study_is_read_again_and_continued(study, problem, monkeypatch):
    opened = regaug.Study.open(study.folder)
    assert str(opened) == str(study)
    monkeypatch.setattr(type(problem.lightning), "train", None)  # nothing is left to do
    out = study.folder.parents[1]
    again = regaug.compare(problem, methods=["mixup", "foma-rho"], trials=2, out=out)
    assert str(again) == str(study)


def test_the_report_has_lines_that_train_the_same_way(study, problem):
    page = (study.folder / "report.html").read_text()
    assert "test_loss" in page
    assert "regaug fit" not in page
    for method in ("erm", "foma-rho"):
        code = net_recipe(study, method)
        made = {"make_module": Module, "make_datamodule": Data}
        code = code.replace("pl.Trainer(", "pl.Trainer(logger=False, enable_checkpointing=False, ")
        with quiet():
            exec(code, made)
        assert made["trainer"].current_epoch == 2


def test_errors_below_zero_are_told_in_points():
    def log(name):
        return lambda self, batch, i: self.log(name, self.loss_of(batch) - 10.0)

    below = change(validation_step=log("val_loss"), test_step=log("test_loss"))
    study = regaug.compare(make_problem(below, epochs=1), methods=["mixup"], trials=1)
    assert study.comparison.unit == "points"
    assert study.comparison.row("erm").mean < 0
    assert study._repr_html_()


@pytest.mark.serial
@pytest.mark.slow
def test_processes_find_the_same(tmp_path):
    code = """
import regaug
from examples.lightning_study import Regressor, make_data

if __name__ == "__main__":
    problem = regaug.Problem.from_lightning(Regressor, make_data, epochs=2, splits=2)
    options = {"methods": ["mixup"], "trials": 1}
    one, two = (regaug.compare(problem, jobs=jobs, **options) for jobs in (1, 2))
    assert str(one) == str(two)
"""
    script = tmp_path / "study.py"
    script.write_text(code)
    project = regaug.__file__.rsplit("/src/", 1)[0]
    path = f"{project}/src:{project}"
    done = subprocess.run(
        [sys.executable, str(script)], env={"PYTHONPATH": path, "PATH": ""}, check=False
    )
    assert done.returncode == 0
