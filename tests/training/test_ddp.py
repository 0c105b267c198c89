"""Two processes, as torchrun starts them, are one training on joint batches."""

import json
import os
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from regaug import _random, methods
from regaug.samplers import SAMPLERS
from regaug.training import Machine, fit
from regaug.training.state import read_state

SCRIPT = Path(__file__).with_name("ddp_script.py")
RANKS = (0, 1)
NAMES = ("erm", "nearest", "layer", "batch norm")

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(
        not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
        reason="needs a torch with torch.distributed and gloo",
    ),
]


def run_with_torchrun(argument, script=SCRIPT):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    return subprocess.run(
        [*command, str(script), str(argument)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module", params=["forked", pytest.param("torchrun", marks=pytest.mark.slow)])
def folder(request, run_forked, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ddp")
    if request.param == "forked":
        run_forked(SCRIPT, folder)
    else:
        done = run_with_torchrun(folder)
        assert done.returncode == 0, done.stderr
    return folder


WRITE_ENVIRONMENT = """
import json, os, pathlib, sys
names = ("RANK", "LOCAL_RANK", "ROLE_RANK", "GROUP_RANK")
names += ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE")
found = {name: os.environ.get(name) for name in names}
there = {name: name in os.environ for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")}
pathlib.Path(sys.argv[1], f"{found['RANK']}.json").write_text(json.dumps(found | there))
"""


def test_forked_processes_are_told_what_torchrun_says(run_forked, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(WRITE_ENVIRONMENT)
    said = []
    for name, run in (
        ("forked", lambda to: run_forked(script, to)),
        ("torchrun", lambda to: run_with_torchrun(to, script)),
    ):
        (tmp_path / name).mkdir()
        run(tmp_path / name)
        said.append([json.loads((tmp_path / name / f"{rank}.json").read_text()) for rank in RANKS])
    assert said[0] == said[1]
    assert None not in said[0][0].values()


def read(folder, name, again=""):
    return [read_state(folder / f"{name} {rank}{again}") for rank in RANKS]


def same(some, others):
    return some.keys() == others.keys() and all(torch.equal(some[n], others[n]) for n in some)


@pytest.mark.parametrize("name", ["erm", "nearest"])
def test_processes_see_disjoint_samples_and_equally_many(folder, script, name):
    outcomes = read(folder, name)
    settings = script["CASES"][name][2]
    assert [outcome["size"] for outcome in outcomes] == [2, 2]
    epochs = list(zip(*(outcome["batches"] for outcome in outcomes), strict=True))
    assert len(epochs) == settings.epochs
    for first, second in epochs:
        assert [len(batch) for batch in first] == [len(batch) for batch in second] == [18] * 5
        seen = np.concatenate([*first, *second])
        assert sorted(seen) == list(range(180))  # all 10 batches of 18, none of them twice


def test_nearest_batches_are_near_in_every_process(folder, script):
    y = script["make_split"]().train.y
    for outcome in read(folder, "nearest"):
        widths = [y[batch].max() - y[batch].min() for batch in outcome["batches"][0]]
        assert np.median(widths) < 0.5 * (y.max() - y.min())


@pytest.mark.parametrize("name", NAMES)
def test_all_processes_end_with_bit_equal_weights_and_predictions(folder, script, name):
    first, second = read(folder, name)
    assert same(first["weights"], second["weights"])
    assert same(first["predictions"], second["predictions"])
    assert first["validation"] == second["validation"]
    assert not same(first["weights"], dict(script["CASES"][name][0]().state_dict()))  # it trained


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_those_of_the_weights_in_one_process(folder, script, name):
    first, _ = read(folder, name)
    model, split = script["CASES"][name][0](), script["make_split"]()
    model.double().eval().load_state_dict(first["weights"])
    for part in ("validation", "test"):
        with torch.no_grad():
            expected = split.restore(model(getattr(split, part).x.double()))
        torch.testing.assert_close(
            first["predictions"][part].double(), expected, rtol=1e-5, atol=1e-5
        )


def train_on_joint_batches(make_model, split, name, settings):
    """Average the two processes' losses; a plain loop, step by step."""
    ready = [methods.get(name).prepare(settings.method_settings) for _ in RANKS]
    samplers = [
        SAMPLERS[ready[rank].settings["sampler"]](
            split.train.y,
            settings.batch_size,
            seed=settings.seed,
            drop_last=True,
            rank=rank,
            world_size=2,
        )
        for rank in RANKS
    ]
    augmentations = [one.augmentation for one in ready]
    model = make_model().double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, weight_decay=0)
    x, y = split.train.x.double(), split.train.y.double()
    states, errors, means = [], [], []
    for epoch in range(settings.epochs):
        means.append([])
        for rank in RANKS:
            samplers[rank].set_epoch(epoch)
            seed = _random.derive(_random.Stream.EPOCHS, settings.seed, epoch, rank)
            augmentations[rank].generator.manual_seed(seed)
        for number, batches in enumerate(zip(*samplers, strict=True)):
            losses = []
            for augmentation, batch in zip(augmentations, batches, strict=True):
                augmentation.progress = (epoch + number / len(samplers[0])) / settings.epochs
                new_x, new_y = augmentation(x[batch], y[batch])
                losses.append(F.mse_loss(model(new_x), new_y))
            optimizer.zero_grad()
            (sum(losses) / 2).backward()
            means[-1].append(sum(losses).item() / 2)
            if settings.clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.step()
        with torch.no_grad():
            errors.append(F.mse_loss(model(split.validation.x.double()), split.validation.y))
        states.append({name: value.clone() for name, value in model.state_dict().items()})
    return states[int(torch.stack(errors).argmin())], [np.mean(own) for own in means]


@pytest.mark.parametrize("name", ["erm", "nearest"])
def test_two_processes_are_one_loop_over_joint_batches(folder, script, name):
    make_model, method, settings, _ = script["CASES"][name]
    expected, losses = train_on_joint_batches(make_model, script["make_split"](), method, settings)
    first, second = read(folder, name)
    for layer, value in expected.items():
        torch.testing.assert_close(first["weights"][layer], value, rtol=0, atol=1e-10)
    assert first["loss"] == second["loss"] == pytest.approx(losses, rel=1e-6)


def test_the_result_is_close_to_one_process_with_the_global_batch(folder, script):
    make_model, method, settings, precision = script["CASES"]["erm"]
    split = script["make_split"]()
    one = fit(
        make_model(),
        split,
        method,
        replace(settings, batch_size=2 * settings.batch_size),
        machine=Machine(precision=precision),
    )
    first, _ = read(folder, "erm")
    spread = float(split.y_scaler.std[0])
    assert one.scores["test"].rmse < 0.5 * spread  # both have learned most of what there is
    assert first["test"] == pytest.approx(one.scores["test"].rmse, rel=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_of_two_processes_continues_to_the_same_result(folder, name):
    for whole, again in zip(read(folder, name), read(folder, name, " again"), strict=True):
        assert same(whole["weights"], again["weights"])
        assert same(whole["predictions"], again["predictions"])
        assert whole["validation"] == again["validation"]
        assert whole["best_epoch"] == again["best_epoch"]


@pytest.mark.slow
def test_a_loss_that_is_not_finite_in_one_process_ends_all_with_the_message():
    done = run_with_torchrun("diverge")
    assert done.returncode != 0
    assert "DivergedError: The loss became nan in epoch 1, step 1 of 5" in done.stderr
