"""The net for pairs of a drug and a protein."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from regaug import FOMA
from regaug.data.datasets.pairs import (
    DRUG_LENGTH,
    DRUG_SYMBOLS,
    N_FEATURES,
    PROTEIN_LENGTH,
    PROTEIN_SYMBOLS,
    OneHotPairs,
    encode,
)
from regaug.exceptions import ArgumentError
from regaug.models import DeepDTA

SMALL = {"drug": (6, 20), "protein": (4, 40)}


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def make_x(n=5, seed=0):
    return torch.randn(n, 6 * 20 + 4 * 40, generator=torch.Generator().manual_seed(seed))


def make_pairs():
    drugs = encode(["CC(=O)Oc1ccccc1", "CN1C=NC2=C1C(=O)N"], DRUG_SYMBOLS, DRUG_LENGTH)
    proteins = encode(["MKTAYIAKQR" * 5, "GAVLIPFMWS" * 120], PROTEIN_SYMBOLS, PROTEIN_LENGTH)
    return OneHotPairs(drugs, proteins, np.array([[0, 0], [0, 1], [1, 0], [1, 1]]))


def test_the_parameter_count_follows_from_the_sizes():
    drug = (63 * 4 + 1) * 32 + (32 * 6 + 1) * 64 + (64 * 8 + 1) * 96
    protein = (26 * 4 + 1) * 32 + (32 * 8 + 1) * 64 + (64 * 12 + 1) * 96
    encoders = drug + protein + 2 * (96 + 1) * 256
    dense = (512 + 1) * 256 + (256 + 1) * 128 + (128 + 1) * 128 + (128 + 1)
    assert count(DeepDTA()) == encoders + dense == 393_857


def test_its_strings_are_those_of_the_data_sets():
    net = DeepDTA()
    assert tuple(net.drug) == (len(DRUG_SYMBOLS), DRUG_LENGTH)
    assert tuple(net.protein) == (len(PROTEIN_SYMBOLS), PROTEIN_LENGTH)


def test_it_takes_the_pairs_that_the_data_sets_give():
    x, y = make_pairs()[:], torch.tensor([[5.0], [7.0], [6.0], [9.0]])
    assert x.shape == (4, N_FEATURES)
    model = DeepDTA()
    F.mse_loss(*FOMA(rho=0.9).at(model, model.places[0])(x, y)).backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_the_first_channel_of_the_drug_encoder_is_a_symbol():
    pairs = make_pairs()
    model = DeepDTA()
    seen = []
    model.encoder.drug.convolutions.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    model.encoder.protein.convolutions.register_forward_pre_hook(
        lambda _, args: seen.append(args[0])
    )
    model(pairs[:1])
    for one_hot, codes in zip(seen, (pairs.drugs[0], pairs.proteins[0]), strict=True):
        assert torch.equal(one_hot[0].argmax(dim=0), torch.from_numpy(codes).long())
        assert torch.equal(one_hot[0].sum(dim=0), torch.ones(len(codes)))


@pytest.mark.parametrize("activation", ["relu", None])
def test_the_prediction_is_the_written_out_formula(activation):
    model = DeepDTA(2, **SMALL, activation=activation)
    x = make_x()
    encoded = []
    for encoder, string in (
        (model.encoder.drug, x[:, :120].reshape(-1, 6, 20)),
        (model.encoder.protein, x[:, 120:].reshape(-1, 4, 40)),
    ):
        for layer in (0, 2, 4):
            weight, bias = (getattr(encoder.convolutions[layer], key) for key in ("weight", "bias"))
            string = F.relu(F.conv1d(string, weight, bias))
        encoded.append(encoder.linear(string.max(dim=2).values))
    hidden = torch.cat(encoded, dim=1)
    for layer in (model.hidden_1[0], model.hidden_2[0], model.hidden_3[0]):
        hidden = layer(hidden)
        hidden = hidden.relu() if activation else hidden
    torch.testing.assert_close(model(x), model.head(hidden))


def swap_effect(model):
    """Return how much the effect of another drug depends on the protein."""
    x = make_x(4)
    drugs, proteins = x[:2, :120], x[2:, 120:]
    grid = torch.stack(
        [model(torch.cat([drug, protein])[None]) for drug in drugs for protein in proteins]
    ).squeeze()
    return (grid[0] - grid[1] - grid[2] + grid[3]).abs().item()


def test_without_activation_drug_and_protein_only_add_up():
    assert swap_effect(DeepDTA(**SMALL, activation=None)) < 1e-6
    assert swap_effect(DeepDTA(**SMALL)) > 1e-5


def test_the_shortest_strings_leave_one_position():
    model = DeepDTA(drug=(6, 16), protein=(4, 22))
    assert model(torch.zeros(1, 6 * 16 + 4 * 22)).shape == (1, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drug": (6, 15)}, r"`drug\[1\]` must be at least 16, got 15"),
        ({"protein": (4, 21)}, r"`protein\[1\]` must be at least 22, got 21"),
        ({"drug": (0, 20)}, r"`drug\[0\]` must be at least 1, got 0"),
        ({"protein": (4,)}, r"`protein` must be \(symbols, positions\), got \(4,\)"),
        ({"activation": "tanh"}, "`activation` must be one of 'relu', None, got 'tanh'"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        DeepDTA(**SMALL | options)
