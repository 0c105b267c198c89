"""Numbers that are too small to matter."""

import pytest
import torch

from regaug.training.tiny import tiny_as_zero

TINY = torch.finfo(torch.float32).tiny


def half():
    return (torch.tensor(TINY) / 2).item()


def test_tiny_numbers_are_zero_inside_and_kept_afterwards():
    assert half() == TINY / 2
    with tiny_as_zero():
        assert half() == 0.0
        with tiny_as_zero():
            assert half() == 0.0
        assert half() == 0.0
    assert half() == TINY / 2


def test_who_takes_them_as_zero_already_still_does_afterwards():
    torch.set_flush_denormal(True)
    try:
        with tiny_as_zero():
            pass
        assert half() == 0.0
    finally:
        torch.set_flush_denormal(False)


def test_an_error_restores_them():
    with pytest.raises(ZeroDivisionError), tiny_as_zero():
        1 / 0  # noqa: B018
    assert half() == TINY / 2
