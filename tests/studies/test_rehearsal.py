"""The rehearsal of a network: what would end a study in its middle ends it before it begins."""

import gc
import weakref

import pytest
import torch
from torch import nn

from regaug import methods
from regaug.data import split_dataset
from regaug.exceptions import ArgumentError, ArgumentTypeError, PlaceError, UnknownNameError
from regaug.methods import Reach
from regaug.problems import NETWORKS, Problem
from regaug.studies.compare import compare
from regaug.studies.eligibility import leave_out
from regaug.studies.rehearsal import Rehearsal, rehearse

ALL = methods.names()


def make_splits(x=None, *, targets=1, n=30):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, generator=generator) if x is None else x
    return split_dataset((x, torch.rand(n, targets, generator=generator)), seeds=1)


class Net(nn.Module):
    def __init__(self, outputs=1):
        super().__init__()
        self.hidden, self.other, self.head = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, outputs)

    def forward(self, x):
        return self.head(self.hidden(x))


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.EmbeddingBag(9, 4), nn.Linear(4, 1)

    def forward(self, ids):
        return self.head(self.embedding(ids))


def problem_of(make, **options):
    return Problem(make_splits(), lambda split: make(), **options)


def tokens(**options):
    ids = torch.arange(30 * 5).reshape(30, 5) % 9
    return Problem(make_splits(ids), lambda split: Tokens(), **options)


def test_a_network_that_works_says_where_methods_act():
    assert rehearse(problem_of(Net)).places == ("input",)
    named = rehearse(problem_of(Net, places=["hidden", "head"]))
    assert named.places == ("input", "hidden", "head")
    assert named.notes == (
        "Methods act on the inputs, and those that act at a layer at hidden, head, as `places` "
        "says.",
    )


def test_the_places_of_the_network_itself_count_and_an_empty_list_takes_them_back():
    class Named(Net):
        places = ("hidden",)

    assert rehearse(problem_of(Named)).places == ("input", "hidden")
    without = rehearse(problem_of(Named, places=[]))
    assert without.places == ("input",)
    assert without.notes == ("`places` names no layer: methods act on the inputs alone.",)
    (note,) = rehearse(problem_of(Net)).notes
    assert note == "The network names no layer: methods act on the inputs alone."


def test_the_net_for_tables_needs_none():
    assert rehearse(Problem(make_splits())) == Rehearsal()


def test_it_draws_nothing_from_the_global_generator_and_leaves_the_rows_as_they_are():
    problem = problem_of(Net, places=["hidden"])
    before, state = problem.splits[0].train.x.clone(), torch.get_rng_state()
    rehearse(problem)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(problem.splits[0].train.x, before)


def test_a_network_is_rehearsed_once_and_the_problem_is_not_kept():
    made = []

    def make():
        made.append(1)
        return Net()

    problem = problem_of(make)
    assert rehearse(problem) is rehearse(problem)
    assert made == [1, 1]  # once to see that it is a network
    gone = weakref.ref(problem)
    del problem
    gc.collect()
    assert gone() is None


# What is refused


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: "net", ArgumentTypeError, "return a torch.nn.Module, got str"),
        (lambda: Net, ArgumentTypeError, "return a torch.nn.Module, got type"),
        (lambda: None, ArgumentTypeError, "return a torch.nn.Module, got NoneType"),
        (lambda: Net(2), ArgumentError, r"a prediction for every target, \(2, 1\), got \(2, 2\)"),
        (lambda: nn.LSTM(3, 1), ArgumentTypeError, "put out one tensor, got a tuple"),
        (lambda: nn.Linear(4, 1), ArgumentError, r"x \(2, 3\) for 2 samples, .*RuntimeError: mat1"),
        (nn.Identity, ArgumentError, "with weights to train, got Identity"),
        (lambda: Net().requires_grad_(False), ArgumentError, "with weights to train, got Net"),
    ],
    ids=["text", "class", "none", "wide", "tuple", "inputs", "empty", "frozen"],
)
def test_what_is_no_network_for_the_data_is_refused(make, error, match):
    with pytest.raises(error, match=f"`model` must .*{match}"):
        rehearse(problem_of(make))


def test_the_error_of_the_network_itself_is_the_cause():
    class Broken(Net):
        def forward(self, x):
            raise KeyError("mine")

    with pytest.raises(ArgumentError, match="this Broken ended in KeyError: 'mine'") as found:
        rehearse(problem_of(Broken))
    assert isinstance(found.value.__cause__, KeyError)


def test_an_unknown_place_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match=r"`places` .* 'hiden'. Did you mean 'hidden'\?"):
        rehearse(problem_of(Net, places=["hiden"]))


def test_a_place_that_does_not_run_is_refused():
    with pytest.raises(PlaceError, match="`places` must be .* 'other' did not run"):
        rehearse(problem_of(Net, places=["other"]))


def test_a_place_whose_rows_are_no_samples_is_refused():
    class TimeFirst(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.GRU(3, 4), nn.Linear(4, 1)

        def forward(self, x):
            return self.head(self.rnn(x.expand(5, -1, -1))[0][-1])

    with pytest.raises(PlaceError, match="`places` must be .* batch_first=True"):
        rehearse(problem_of(TimeFirst, places=["rnn"]))


@pytest.mark.parametrize("places", [[7], 7, [None]])
def test_places_are_names(places):
    class Named(Net):
        pass

    Named.places = places
    with pytest.raises(ArgumentTypeError, match="`model.places` must be a list of names"):
        rehearse(problem_of(Named))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "script", [torch.jit.script, lambda net: torch.jit.trace(net, torch.ones(2, 3))]
)
def test_a_compiled_network_that_hides_its_layers_is_refused_with_the_way_out(script):
    with pytest.raises(PlaceError, match="hides its layers. Return the module .* places=\\[\\]"):
        rehearse(problem_of(lambda: script(Net()), places=["hidden"]))
    assert rehearse(problem_of(lambda: script(Net()))).places == ("input",)


def test_a_compiled_network_that_can_be_run_uncompiled_has_its_places():
    problem = problem_of(lambda: torch.compile(Net(), backend="eager"), places=["hidden"])
    assert rehearse(problem).places == ("input", "hidden")


def test_a_study_refuses_all_that_before_anything_trains(tmp_path):
    with pytest.raises(ArgumentError, match="a prediction for every target"):
        compare(problem_of(lambda: Net(2)), out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_networks_of_the_library_are_known_to_work(monkeypatch):
    class Named(Net):
        places = ("hidden",)

        def forward(self, x):
            raise AssertionError("large ones take their time")

    def make(split):
        return Named()

    monkeypatch.setitem(NETWORKS, "image", make)
    assert rehearse(Problem(make_splits(), make)).places == ("input", "hidden")


# What is left out


def test_what_needs_a_layer_is_left_out_where_none_is_named():
    kept, said = leave_out(problem_of(Net), ALL)
    assert set(ALL) - set(kept) == {"manifold-mixup"}
    assert said[-1] == (
        "manifold-mixup is left out: no layer is named to act at. Name one with Problem(..., "
        "places=[...])."
    )
    kept, said = leave_out(problem_of(Net, places=["hidden"]), ALL)
    assert kept == ALL
    assert len(said) == 1


def test_with_codes_methods_act_at_the_layer_if_they_learn_nothing_from_the_inputs():
    kept, said = leave_out(tokens(places=["embedding"]), ALL)
    assert set(ALL) - set(kept) == {"ada", "cems", "feature-mix", "teacher-rows"}
    assert said == [
        "The inputs have codes (torch.int64), with nothing between them: methods act at embedding, "
        "as `places` says.",
        "ada, cems, feature-mix, teacher-rows are left out: the inputs are codes, with nothing to "
        "learn from. Numbers are given as .float().",
    ]


def test_with_codes_and_without_a_layer_there_is_nothing_to_compare():
    with pytest.raises(ArgumentError, match=r"one that can act .* codes, .*places=\[\.\.\.\]"):
        leave_out(tokens(), methods.usual())
    for names in (["erm"], ["erm", "rare"]):  # batches can be drawn in any way
        assert leave_out(tokens(), names)[0] == tuple(names)


class PastTheLayer(nn.Module):
    """Codes with a mask, which goes past the embedding."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(9, 4), nn.Linear(4, 1)

    def forward(self, ids, mask):
        return self.head((self.embedding(ids) * mask[..., None]).mean(1))


def test_where_a_part_of_a_sample_goes_past_the_layer_pairs_are_not_used_up_there():
    ids = torch.arange(30 * 5).reshape(30, 5) % 9
    inputs = {"ids": ids, "mask": torch.ones(30, 5)}
    problem = Problem(
        split_dataset((inputs, torch.rand(30)), seeds=1),
        lambda split: PastTheLayer(),
        places=["embedding"],
    )
    assert not rehearse(problem).reach.pairs
    kept, said = leave_out(problem, ALL)
    assert set(ALL) - set(kept) == {"c-mixup", "ada", "cems", "feature-mix", "teacher-rows"}
    assert any(
        note.startswith("c-mixup is left out: a part of each sample goes past embedding")
        for note in said
    )
    behind = Problem(problem.splits, problem.model, places=["head"])
    assert rehearse(behind).reach.pairs
    assert "c-mixup" in leave_out(behind, ALL)[0]


def test_with_numbers_pairs_are_used_up_on_the_inputs_then():
    class Residual(Net):
        def forward(self, x):
            x = self.hidden(x)
            return self.head(x + self.other(x))

    problem = problem_of(Residual, places=["other"])
    assert rehearse(problem).reach == Reach(pairs=False)
    kept, said = leave_out(problem, ALL)
    assert kept == ALL
    assert any("A part of each sample goes past other" in note for note in said)
