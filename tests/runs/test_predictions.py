"""Predictions as text: they come back bit for bit, and nothing else is taken for them."""

import base64

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from regaug.runs.predictions import from_text, shorten, to_text

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=finite))
def test_they_come_back_bit_for_bit(values):
    again = from_text(to_text(values))
    assert again.dtype == np.float32
    assert again.shape == values.shape
    assert again.tobytes() == values.tobytes()


def encode(*values):
    return base64.b64encode(np.array(values, "<f4").tobytes()).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2x1",
        encode(1.0, 2.0),
        f"0x1:{encode()}",
        f"2x2:{encode(1.0, 2.0)}",
        f"1x1:{encode(1.0, 2.0)}",
        f"-2x-1:{encode(1.0, 2.0)}",
        f"2x1:{encode(1.0, np.nan)}",
        f"2x1:{encode(1.0, np.inf)}",
        f"2x1: {encode(1.0, 2.0)}",
        f"2x1:{encode(1.0, 2.0)[:-1]}",
        "999999999x999999999:AAAA",
        "2x1:ÄÄÄÄ",
        7,
        None,
        ["2x1:"],
    ],
)
def test_what_is_no_text_of_predictions_is_an_error(text):
    with pytest.raises((TypeError, ValueError)):
        from_text(text)


def test_what_float32_cannot_hold_becomes_its_largest_number():
    found = shorten(torch.tensor([[1e300], [-1e300], [0.1]], dtype=torch.float64))
    most = np.finfo(np.float32).max
    assert found.tolist() == [[most], [-most], [np.float32(0.1)]]
