"""Names that come from outside: registered by hand, or brought by an installed package."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import regaug
from regaug import GaussianNoise, methods
from regaug._registry import REGISTRIES
from regaug.data import ArrayData, Info, Named
from regaug.data.datasets.synthetic import make_manifold
from regaug.ensemble.contents import AUTO, NETS
from regaug.exceptions import ArgumentError, ArgumentTypeError, RegaugError, UnknownNameError
from regaug.methods import MAKERS, METHODS, RESERVED, Between, Method
from regaug.models import MLP
from regaug.samplers import SAMPLERS, BatchSampler
from regaug.training import Settings, fit, fit_many
from regaug.training.baselines import BASELINES

pytestmark = pytest.mark.usefixtures("registries")

NOISE = Method(
    "add a lot of noise",
    GaussianNoise,
    {"sampler": "random", "place": "input", "p": 1.0, "anneal": 0.7, "sigma": 0.5},
    {"p": Between(0.05, 1.0), "sigma": Between(0.001, 1.0, log=True)},
)
FACTS = Info("squares", task="table", metric="rmse", split="At random.")


def load_squares(n=60):
    x = np.linspace(-1, 1, n)[:, None]
    return ArrayData(x, x[:, 0] ** 2, info=FACTS)


class Descending(BatchSampler):
    def _order(self, rng):
        return np.roll(np.argsort(-self.y[:, 0], kind="stable"), rng.integers(len(self.y)))


# By hand


def test_a_method_of_ones_own_is_one_of_all():
    regaug.methods.register("big-noise", NOISE)
    assert regaug.methods.get("big-noise") is NOISE
    assert regaug.methods.names()[-1] == "big-noise"
    split = regaug.data.standardize(make_manifold("sine", n=60).split(seed=0))
    settings = Settings(epochs=2, method_settings={"sigma": 0.1})
    assert fit(MLP(1, hidden=(4,)), split, "big-noise", settings).method == "big-noise"
    [many] = fit_many(split, "big-noise", [settings], hidden=(4,))
    assert many.settings.method_settings["sigma"] == 0.1


def test_a_study_compares_it(monkeypatch, shorten):

    shorten(monkeypatch, 2)
    monkeypatch.setattr("regaug.studies.eligibility.baseline_names", lambda split: ("mean",))
    regaug.methods.register("big-noise", NOISE)
    table = make_manifold("sine", n=60)
    study = regaug.compare(table, methods=["erm", "big-noise"], trials=1, splits=2)
    assert {"erm", "big-noise"} <= {row.name for row in study.comparison.rows}


def test_a_sampler_of_ones_own_is_a_setting():
    regaug.samplers.register("descending", Descending)
    ready = methods.get("mixup").prepare({"sampler": "descending"})
    assert isinstance(ready.sampler(torch.randn(20), 4), Descending)
    assert list(SAMPLERS)[-1] == "descending"


def test_a_data_set_of_ones_own_is_one_of_all():
    regaug.data.register("squares", Named(FACTS, load_squares))
    assert "squares" in regaug.data.NAMES
    assert list(regaug.data.NAMES)[-1] == "squares"
    assert len(regaug.data.load("squares", n=50)) == 50
    assert regaug.data.info("squares") is FACTS
    assert regaug.data.where("squares") is None
    assert regaug.Problem.named("squares", splits=2).name == "squares"
    with pytest.raises(UnknownNameError, match="Unknown option of squares 'm'.*Did you|Available"):
        regaug.data.load("squares", m=3)


@pytest.mark.parametrize("taken", ["mixup", "big-noise"])
def test_a_name_that_is_taken_is_refused(taken):
    regaug.methods.register("big-noise", NOISE)
    other = replace(NOISE, summary="something else")
    with pytest.raises(ArgumentError, match=f"got '{taken}': there is a method of that name"):
        regaug.methods.register(taken, other)
    regaug.methods.register(taken, other, replace=True)
    assert regaug.methods.get(taken) is other
    assert len(regaug.methods.names()) == 11


def test_the_same_again_is_no_clash():
    regaug.methods.register("big-noise", NOISE)
    regaug.methods.register("big-noise", replace(NOISE))
    assert regaug.methods.names().count("big-noise") == 1


def test_names_of_baselines_and_blends_are_not_for_methods():
    assert {AUTO, NETS, *BASELINES, *MAKERS} == set(RESERVED)
    for name in RESERVED:
        with pytest.raises(ArgumentError, match=f"`name` must be a new one, got '{name}'"):
            regaug.methods.register(name, NOISE, replace=True)


@pytest.mark.parametrize("name", ["Big", "big noise", "", "-a", "a--b", "a/b", 3, None])
def test_names_can_be_typed(name):
    with pytest.raises(ArgumentError, match="`name` must be lower-case letters, digits and single"):
        regaug.methods.register(name, NOISE)


def test_what_is_registered_must_be_what_it_should():
    with pytest.raises(
        ArgumentTypeError, match="must be a regaug.methods.Method, got GaussianNois"
    ):
        regaug.methods.register("noise-2", GaussianNoise)
    with pytest.raises(ArgumentError, match="a default for place and sampler"):
        regaug.methods.register("noise-2", replace(NOISE, defaults={}))
    with pytest.raises(ArgumentTypeError, match="derives from regaug.samplers.BatchSampler"):
        regaug.samplers.register("mine", 3)
    with pytest.raises(ArgumentTypeError, match="`named` must be a regaug.data.Named"):
        regaug.data.register("squares", load_squares)
    with pytest.raises(ArgumentError, match="`info.name` must be 'cubes', got 'squares'"):
        regaug.data.register("cubes", Named(FACTS, load_squares))


# By an installed package

CODE = """
from regaug import GaussianNoise
from regaug.data import ArrayData, Info, Named
from regaug.methods import Method

class Loud(GaussianNoise):
    pass

loud = Method("noise", Loud, {"sampler": "random", "place": "input", "sigma": 1.0})
wrong = 3

def load(n=30):
    return ArrayData([[float(i)] for i in range(n)], range(n), info=facts)

facts = Info("lines", task="table", metric="rmse", split="At random.")
lines = Named(facts, load)
"""
POINTS = """
[regaug.methods]
loud = loud_package:loud
missing = loud_package:no_such_thing
wrong = loud_package:wrong
[regaug.datasets]
lines = loud_package:lines
"""


def test_a_package_brings_methods_and_data_sets(install):
    install("loud_package", CODE, POINTS)
    assert regaug.methods.names()[10:] == ("loud", "missing", "wrong")
    assert regaug.methods.get("loud").prepare().augmentation.sigma == 1.0
    assert "lines" in regaug.data.NAMES
    assert len(regaug.data.load("lines", n=20)) == 20


def test_a_package_is_imported_when_it_is_asked_for(install):
    install(
        "broken_package", "raise ImportError('of the test')", POINTS.replace("loud_p", "broken_p")
    )
    assert "loud" in regaug.methods.names()
    assert regaug.methods.get("mixup")
    with pytest.raises(RegaugError, match="'loud' of the package 'broken_package'.*of the test"):
        regaug.methods.get("loud")


@pytest.mark.parametrize(
    ("name", "words"), [("missing", "AttributeError"), ("wrong", "must be a .*Method, got int")]
)
def test_a_package_that_is_wrong_is_named(install, name, words):
    install("loud_package", CODE, POINTS)
    with pytest.raises(RegaugError, match=f"'{name}' of the package 'loud_package'.*{words}"):
        regaug.methods.get(name)


def test_names_that_are_taken_are_left_out_with_a_word(install):
    install("loud_package", CODE, "[regaug.methods]\nmixup = loud_package:loud\n")
    with pytest.warns(UserWarning, match="'mixup' of the package 'loud_package' is left out"):
        names = regaug.methods.names()
    assert names.count("mixup") == 1
    assert regaug.methods.get("mixup").augmentation is regaug.Mixup


def test_of_two_packages_the_first_is_taken(install):
    install("loud_package", CODE, "[regaug.methods]\nloud = loud_package:loud\n")
    install("more_package", CODE, "[regaug.methods]\nloud = more_package:loud\n")
    with pytest.warns(UserWarning, match="'loud' of the package '.*' is left out"):
        assert regaug.methods.names()[10:] == ("loud",)


def test_a_method_of_a_package_may_be_replaced(install):
    install("loud_package", CODE, POINTS)
    with pytest.raises(ArgumentError, match="there is a method of that name"):
        regaug.methods.register("loud", NOISE)
    regaug.methods.register("loud", NOISE, replace=True)
    assert regaug.methods.get("loud") is NOISE


def test_the_command_line_lists_what_packages_bring(install):
    from typer.testing import CliRunner

    from regaug.cli.main import app

    install("loud_package", CODE, POINTS)
    listed = CliRunner().invoke(app, ["data", "list"])
    assert listed.exit_code == 0
    assert "lines\ttable\tyes" in listed.output


def test_a_broken_package_does_not_hide_the_others_from_a_listing(install):
    from typer.testing import CliRunner

    from regaug.cli.main import app

    points = POINTS.replace("loud_package", "broken_package")
    install("broken_package", "raise ImportError('of the test')", points)
    listed = CliRunner().invoke(app, ["data", "list"])
    assert listed.exit_code == 0
    assert "diabetes\ttable\tyes" in listed.output
    assert "lines\t-\tno\t-\tThe data set 'lines' of the package" in listed.output


def test_no_package_is_looked_for_before_a_name_is(fresh):
    code = "from regaug import data, methods, samplers; from regaug._registry import REGISTRIES"
    code += "; print([own._points for own in REGISTRIES.values()])"
    assert fresh(code) == "[None, None, None]"
    assert set(REGISTRIES) == {"regaug.samplers", "regaug.methods", "regaug.datasets"}


def test_an_unknown_name_is_looked_for_among_all():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regaug.methods.register("big-noise", NOISE)
        with pytest.raises(UnknownNameError, match="Did you mean 'big-noise'"):
            regaug.methods.get("big-noize")
    assert "big-noise" in METHODS
    assert "big-noize" not in METHODS
    assert len(METHODS) == 11
