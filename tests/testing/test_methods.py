"""The checks of a method of one's own."""

from dataclasses import replace

import pytest

from regaug import FOMA, GaussianNoise, Mixup
from regaug.exceptions import ArgumentTypeError, ContractError, UnknownNameError
from regaug.methods import Between, Method, OneOf
from regaug.testing import check_method

START = {"sampler": "random", "place": "input", "p": 1.0, "anneal": 0.7}
GOOD = Method(
    "add a lot of noise",
    GaussianNoise,
    {**START, "sigma": 0.5},
    {"p": Between(0.05, 1.0), "sigma": Between(0.001, 1.0, log=True)},
)


class Broken(Mixup):
    def transform(self, x, y, params):
        return x * float("nan"), y


def test_one_that_is_right_passes():
    check_method(GOOD)
    check_method("mixup")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"defaults": {"place": "input"}}, "`defaults` must have a 'sampler'"),
        ({"defaults": {**START, "sigmaa": 0.5}}, "'sigmaa', which is no option of its"),
        ({"summary": " "}, "`summary` must say in one line what it does"),
        ({"space": {"p": Between(0.5, 1.0)}}, "reach down to almost off: give it p=Between(0.05"),
        ({"space": {"p": Between(0.0, 0.5)}}, "`space['p']` must hold the default 1.0"),
        ({"space": {"sigma": OneOf((1.0, 2.0))}}, "`space['sigma']` must hold the default 0.5"),
        ({"space": {"sigma": (0.0, 1.0)}}, "must be a Between or a OneOf, got a tuple"),
        ({"space": {"append": OneOf((True,))}}, "'append', which must be among the `defaults`"),
        ({"starts": ({"append": True},)}, "`starts` has 'append'"),
        ({"augmentation": lambda **options: GaussianNoise(**options)}, "pickle says"),
        ({"defaults": {**START, "sigma": {0.5}}}, "numbers, texts, None and lists of them"),
        ({"augmentation": Broken, "defaults": START, "space": {}}, "Its augmentation: A harmless"),
    ],
)
def test_one_that_is_wrong_is_told_why(changes, words):
    with pytest.raises(ContractError) as caught:
        check_method(replace(GOOD, **changes))
    assert str(caught.value).startswith("The method does not do all that a method must:")
    assert words in str(caught.value)


def test_other_things_are_no_methods():
    with pytest.raises(ArgumentTypeError, match=r"must be a regaug.methods.Method.* got type"):
        check_method(FOMA)
    with pytest.raises(UnknownNameError, match="Did you mean 'mixup'"):
        check_method("mixap")
