"""What FOMA does to batches: counted in a training, and on the paper's real batches."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from regaug.augment.foma import FOMA, count_cuts, list_cuts
from regaug.metrics import Scores
from regaug.reproduction.cuts import Cut, count_in_an_epoch, read_cut
from regaug.reproduction.page import read_counted
from regaug.reproduction.problems import find
from regaug.reproduction.recipes import paper_settings, released_settings
from regaug.runs.record import RunRecord
from regaug.runs.run import Run
from regaug.runs.worker import Worker
from regaug.samplers import NearestBatchSampler, RandomBatchSampler

KEPT = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "reproduction"


def make_record(cuts, scale="trailing"):
    settings = paper_settings("airfoil", "foma-rho", seed=0, scale=scale)
    scores = {"test": Scores(n=1, rmse=1, mae=1, mape=1, r2=0, pearson=0, n_zero=0, groups={})}
    run = Run("airfoil/paper", "foma-rho", 0, 0, settings)
    return RunRecord(run, scores, "finished", 1, 1, 0.1, (6, 2, 2), {}, cuts=cuts)


def test_large_values_are_left_alone_where_k_is_0_and_small_ones_where_k_is_all():
    cuts = [(-1, 8, 1), (0, 8, 2), (3, 8, 4), (8, 8, 5)]
    assert read_cut([make_record(cuts, "leading")]) == Cut(12, 9, 3, 8)
    assert read_cut([make_record(cuts, "trailing")]) == Cut(12, 6, 3, 8)
    assert read_cut([make_record([(0, 6, 9)], "leading")] * 2) == Cut(18, 0, 0, 6)


def test_what_is_not_foma_has_no_cut():
    assert read_cut([]) is None
    assert read_cut([make_record(())]) is None


@pytest.fixture(scope="module")
def counted():
    return read_counted(KEPT)


@pytest.mark.parametrize("label", ["foma", "foma-rho", "foma-rho, released"])
def test_what_is_said_of_exchange_rate_is_what_an_epoch_of_its_batches_shows(
    label, counted, real_data, monkeypatch
):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    make = (
        released_settings if label.endswith("released") else partial(paper_settings, method=label)
    )
    settings = make("exchange-rate", seed=0)
    split = find("exchange-rate").problem("paper").split(0)
    method = label.split(",")[0]
    assert count_in_an_epoch(split, method, settings) == counted["exchange-rate"][label]


def test_both_printed_settings_change_no_batch_of_exchange_rate(counted):
    for label, k in (("foma", 16), ("foma-rho", 0)):
        cut = counted["exchange-rate"][label]
        assert (cut.changed, cut.k) == (0, k)
        assert cut.batches == 4373 // (cut.values if label == "foma" else 8)


def test_what_acts_at_a_layer_is_counted_in_a_training_alone(made_up):
    split = find("airfoil").problem("paper").split(0)
    assert count_in_an_epoch(split, "foma", paper_settings("airfoil", "foma", seed=0)) is None
    cut = count_in_an_epoch(split, "foma-rho", paper_settings("airfoil", "foma-rho", seed=0))
    assert cut is not None


def _count(data, sampler, batches=400):
    """Count the cuts of FOMA_rho by table 9 on the real training batches of a data set."""
    settings = paper_settings(data, "foma-rho", seed=0)
    own = settings.method_settings
    augmentation = FOMA(own["alpha"], rho=own["rho"], scale=own["scale"])
    count_cuts(augmentation)
    train = find(data).problem("paper").splits[0].train
    drawn = sampler(train.y, settings.batch_size, seed=0, drop_last=True)
    for number, rows in enumerate(drawn):
        if number < batches:
            x, y = train.x[torch.as_tensor(rows)], train.y[rows]
            new_x, new_y = augmentation(x, y)
            assert torch.allclose(new_x, x, atol=1e-4)
            assert torch.allclose(new_y, y, rtol=1e-5)
    return list_cuts(augmentation)


@pytest.mark.parametrize("sampler", [NearestBatchSampler, RandomBatchSampler])
@pytest.mark.parametrize(("data", "values"), [("airfoil", 6), ("exchange-rate", 8)])
def test_table_9_changes_no_batch_of_airfoil_and_exchange_rate(
    data, values, sampler, real_data, monkeypatch
):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    (cut,) = _count(data, sampler)
    assert cut[:2] == (0, values)  # k = 0 in every batch: no singular value is scaled
    assert cut[2] > 5


def test_table_8_changes_no_batch_of_crimes_and_trains_as_plain_training_does(
    real_data, monkeypatch
):
    monkeypatch.setenv("REGAUG_DATA", str(real_data))
    problem = find("crimes").problem("paper")
    settings = replace(paper_settings("crimes", "foma", seed=0), epochs=1)
    sampler = settings.method_settings["sampler"]
    plain = replace(settings, method_settings={"sampler": sampler})
    runs = [
        Run(problem.name, name, 0, 0, own) for name, own in (("foma", settings), ("erm", plain))
    ]
    foma, erm = (record for run in runs for record in Worker([problem]).do([run]))
    ((k, values, _),) = foma.cuts
    assert (k, values) == (8, 8)  # the dimension of the data is not below the rows of a batch
    # After more epochs rounding has grown, and they differ.
    assert foma.score("test", "rmse") == pytest.approx(erm.score("test", "rmse"), rel=1e-6)
