"""The checks of an augmentation of one's own: right ones pass, and wrong ones are told why."""

import pytest
import torch
from torch import nn

from regaug import FOMA, Mixup
from regaug.augment import Augmentation
from regaug.exceptions import ArgumentTypeError, ContractError
from regaug.testing import check_augmentation


class Jitter(Augmentation[float]):
    """Scale inputs and targets by a number near 1: as one would write it."""

    neutral = 1.0

    def draw(self, x, y):
        return 0.9 + 0.2 * torch.rand((), generator=self.generator).item()

    def transform(self, x, y, params):
        return x * params, y * params


def test_one_that_is_right_passes():
    check_augmentation(Jitter())
    check_augmentation(Jitter(p=0.5, append=True, anneal=0.7, total_steps=100))


class Unwritten(Augmentation[None]):
    neutral = None


class OwnForward(Jitter):
    def forward(self, x, y):
        return x * 2, y * 2


class NeutralChanges(Jitter):
    def transform(self, x, y, params):
        return x * params + 1, y * params


class Flattens(Jitter):
    def transform(self, x, y, params):
        return x.flatten(1) * params, y * params


class Widens(Jitter):
    def transform(self, x, y, params):
        return x.double() * params, y.double() * params


class InPlace(Jitter):
    def transform(self, x, y, params):
        return (x.data.mul_(params), y)


class Global(Jitter):
    def draw(self, x, y):
        return 0.9 + 0.2 * torch.rand(()).item()


class Divides(Jitter):
    def transform(self, x, y, params):
        return (x if params == 1.0 else (x - x.mean(0)) / x.std(0)), y


class BadGradient(Jitter):
    def transform(self, x, y, params):
        return (x if params == 1.0 else x + (x - x.mean(0)).square().sum(0).sqrt()), y


class NeedsMany(Jitter):
    def transform(self, x, y, params):
        if len(x) < 5:
            raise ValueError("at least five rows")
        return x * params, y * params


class Counts(Jitter):
    """Its draws depend on something that a copy of its state does not have."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def draw(self, x, y):
        self.calls += 1
        return super().draw(x, y) + 0.01 * self.calls


class Forgets(Jitter):
    learns = True

    def learn(self, x, y):
        self.spread = x.float().std(0)

    def transform(self, x, y, params):
        if params == 1.0:
            return x, y
        return x + (params - 1.0) * getattr(self, "spread", torch.ones(())).to(x), y


class Unsendable(Jitter):
    def __init__(self):
        super().__init__()
        self.function = lambda: None


class DropsRows(Jitter):
    def transform(self, x, y, params):
        return (x, y) if params == 1.0 else (x[1:], y[1:])


class SeesColumns(Jitter):
    """What it does depends on how the inputs come."""

    def forward(self, x, y):
        if not isinstance(x, torch.Tensor):
            return dict(x), y
        return super().forward(x, y)


class WrongStack(Jitter):
    @classmethod
    def across_runs(cls, parts, x, y):
        return x * 1.05, y * 1.05


class MixesGroups(Mixup):
    def __init__(self):
        super().__init__()
        self.company = "none"  # as if nobody met anybody


class TouchesLoners(Jitter):
    company = "batch"

    def _act_within(self, x, y, limits):
        return self._act(x, y, None)


class IgnoresMasks(Mixup):
    def transform_where(self, x, y, params, mask):
        return self.transform(x, y, params)


class LooksBehindMasks(Jitter):
    def transform_where(self, x, y, params, mask):
        return torch.where(mask, x + x.mean(), x), y


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Unwritten, "Its class has no `draw`: write one"),
        (Unwritten, "Its class has no `transform`"),
        (OwnForward, "a `forward` of its own: write `draw` and `transform` instead"),
        (OwnForward, "In eval mode it must return x and y themselves"),
        (NeutralChanges, "`transform(x, y, neutral)` must leave the batch as it is"),
        (Flattens, "`x` must keep its shape and dtype, (12, 2, 5) of torch.float16, got (12, 10)"),
        (Widens, "(12, 3) of torch.float16, got (12, 3) of torch.float64"),
        (InPlace, "It must not change the tensors it is given"),
        (Global, "It must draw from `self.generator`, and draws from torch's global one"),
        (Divides, "A batch of equal rows must stay finite, got NaN or infinity"),
        (BadGradient, "The gradient through a batch of equal rows must be finite, and is not"),
        (NeedsMany, "One row, and odd numbers of rows, are batches too: that ends with ValueError"),
        (Counts, "`load_state_dict(state_dict())` must restore all that it has learned"),
        (Forgets, "`self.register_buffer(name, tensor)` in the constructor"),
        (Unsendable, "A copy, and what comes out of pickle, goes on as the original does: that"),
        (DropsRows, "With append=True 12 rows must become 24, got 23 and 23"),
        (SeesColumns, "A dict of inputs must give what a table of all their columns gives"),
        (MixesGroups, "`x` of a row must not depend on rows of other groups, and does"),
        (TouchesLoners, "A row that is alone in its group must stay as it is"),
        (IgnoresMasks, "values that are not there must stay as they are, and do not"),
        (LooksBehindMasks, "nothing may depend on values that are not there"),
        (WrongStack, "`across_runs` must give what each run gives alone, and does not"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_one_that_is_wrong_is_told_why(wrong, words):
    with pytest.raises(ContractError) as caught:
        check_augmentation(wrong())
    message = str(caught.value)
    assert message.startswith(f"{wrong.__name__} does not do all that an augmentation must:\n- ")
    assert words in message
    assert isinstance(caught.value, AssertionError)


def test_everything_that_is_missing_is_said_at_once():
    with pytest.raises(ContractError) as caught:
        check_augmentation(OwnForward())
    assert len(str(caught.value).splitlines()) > 5


def test_a_class_or_a_module_is_no_augmentation():
    with pytest.raises(ArgumentTypeError, match=r"derives from .*Augmentation, got FOMA"):
        check_augmentation(FOMA)
    with pytest.raises(ArgumentTypeError, match=r"derives from .*Augmentation, got Linear"):
        check_augmentation(nn.Linear(3, 1))


def test_it_needs_no_test_framework(fresh):
    code = "import sys, regaug.testing; print('pytest' in sys.modules)"
    assert fresh(code) == "False"


def test_the_global_generator_stays_as_it_was():
    before = torch.random.get_rng_state()
    check_augmentation(Mixup())
    assert torch.equal(before, torch.random.get_rng_state())
