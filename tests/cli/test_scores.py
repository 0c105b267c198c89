"""Scores as a terminal shows them."""

import numpy as np
import torch

from regaug.cli.scores import group_table, in_words, target_table
from regaug.metrics import evaluate

TARGET = torch.tensor([[1.0, 1000.0], [2.0, 5000.0], [3.0, 3000.0], [5.0, 2000.0]])
WRONG = TARGET + torch.tensor([[0.1, 300.0], [-0.1, 0.0], [0.1, -300.0], [0.5, 0.0]])


def test_one_target_is_a_line():
    words = in_words(evaluate(WRONG[:, 0], TARGET[:, 0]))
    assert words == "RMSE 0.2646, MAE 0.2000, R2 0.968"


def test_what_is_undefined_is_left_out():
    assert in_words(evaluate(torch.ones(1), torch.zeros(1))) == "RMSE 1.000, MAE 1.000"


def test_every_target_has_a_line_in_its_own_units():
    table = target_table(evaluate(WRONG, TARGET), ("size", "price"))
    assert table.header == ["target", "rows", "RMSE", "MAE", "R2"]
    assert [row[:3] for row in table.rows] == [["size", "4", "0.2646"], ["price", "4", "212.1"]]


def test_the_worst_group_comes_first():
    scores = evaluate(WRONG, TARGET, np.array(["a", "a", "a", "b"]))
    table = group_table(scores, "city", targets=2)
    assert table.header[0] == "city"
    assert table.header[2] == "RMSE / spread"
    worst = max(scores.groups, key=lambda name: scores.groups[name].rmse)
    assert table.rows[0][0] == worst
    assert {row[0]: row[1] for row in table.rows} == {"a": "3", "b": "1"}
