"""Runs of the reproduction: what shares a stack, and what becomes of one that diverges."""

from dataclasses import replace

from regaug.reproduction.recipes import paper_settings
from regaug.reproduction.work import Run, Worker, make_tasks


def make_run(name="erm", split=0, **changes):
    settings = paper_settings("airfoil", name, seed=split)
    return Run("airfoil", "airfoil", "paper", name, split, replace(settings, **changes))


def test_seeds_of_a_method_share_a_stack_and_both_places_do_not(made_up):
    plain = [make_run(split=seed) for seed in range(3)]
    both = [make_run("foma", seed, method={"place": "both"}) for seed in range(2)]
    baselines = [Run("airfoil", "airfoil", "tuned", "ridge", 0, None)]
    assert sorted(len(task) for task in make_tasks([*plain, *both, *baselines])) == [1, 1, 1, 3]
    assert make_tasks([*baselines, *plain])[-1] == tuple(
        baselines
    )  # the paper's protocol comes first


def test_a_stack_and_single_runs_are_scored_alike(made_up):
    stacked = make_run("foma", epochs=2)
    single = make_run("foma", epochs=2, method={**stacked.settings.method, "place": "both"})
    for run in (stacked, single):
        ((key, described, result),) = Worker().do((run,))
        assert key == run.key
        assert described["method"] == "foma"
        assert result["sizes"] == [1003, 300, 200]
        assert set(result["scores"]["test"]) == {"rmse", "mae", "mape", "r2", "pearson"}


def test_a_run_that_diverges_is_a_finding(made_up):
    run = make_run("foma", epochs=3, learning_rate=1e30, method={"place": "both", "k": 1})
    ((_, _, result),) = Worker().do((run,))
    assert result["ending"] == "diverged"
    assert result["scores"]["test"]["rmse"] is None
