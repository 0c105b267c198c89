"""What new rows can be: ranges, flags, categories, dates, gaps, whole numbers."""

import numpy as np
import pandas as pd
import pytest

from regaug.data.tabular.domain import Domain
from regaug.data.tabular.encoding import Encoder


def make_frame(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(30, 90, n),
            "rooms": rng.integers(1, 7, n),
            "city": rng.choice(["Oslo", "Rome", "Bonn"], n),
            "is_new": rng.random(n) < 0.5,
            "day": pd.date_range("2020-01-01", periods=n, freq="9D"),
            "area": np.where(np.arange(n) % 5 == 0, np.nan, rng.uniform(0, 1, n)),
        }
    )
    return frame.sample(frac=1.0, random_state=0, ignore_index=True)


def encode(frame):
    encoder = Encoder.fit(frame)
    return encoder, encoder.transform(frame).astype(np.float64)


def mixed(x, seed=0):
    rng = np.random.default_rng(seed)
    lam = rng.uniform(0, 1, (len(x), 1))
    return lam * x + (1 - lam) * x[rng.permutation(len(x))]


def test_rows_of_the_table_stay_as_they_are():
    encoder, x = encode(make_frame())
    for known in (Domain.of(x, encoder), Domain.of(x), Domain.of(x, encoder, keep_integers=True)):
        np.testing.assert_allclose(known.settle(x), x, rtol=1e-6, atol=1e-5)


def test_a_mixed_row_has_one_level_of_every_category_the_nearer_one():
    encoder, x = encode(make_frame())
    spans = {column.name: span for column, span in encoder.spans()}
    a, b = x[0].copy(), x[0].copy()
    a[spans["city"]], b[spans["city"]] = [1, 0, 0], [0, 0, 1]
    new = Domain.of(x, encoder).settle(np.stack([0.7 * a + 0.3 * b, 0.2 * a + 0.8 * b]))
    assert new[:, spans["city"]].tolist() == [[1, 0, 0], [0, 0, 1]]


def test_what_comes_out_is_a_row_that_encoding_could_have_made():
    encoder, x = encode(make_frame())
    new = Domain.of(x, encoder).settle(mixed(x) + np.random.default_rng(1).normal(0, 9, x.shape))
    again = encoder.transform(encoder.decode(new))
    np.testing.assert_allclose(new, again, rtol=1e-5, atol=1e-4)
    assert not np.allclose(mixed(x), encoder.transform(encoder.decode(mixed(x))))  # it matters


def test_a_gap_stands_for_the_median_and_a_date_decides_on_its_season():
    encoder, x = encode(make_frame())
    spans = {column.name: span for column, span in encoder.spans()}
    row = x[:1].copy()
    row[0, spans["area"]] = [0.123, 0.8]
    row[0, spans["day"]] += [40.0, 5.0, 5.0]
    new = Domain.of(x, encoder).settle(row)[0]
    area, day = new[spans["area"]], new[spans["day"]]
    fill = next(column.fill for column in encoder.columns if column.name == "area")
    assert area == pytest.approx([fill, 1.0])
    assert np.hypot(day[1], day[2]) == pytest.approx(1.0)


def test_no_number_leaves_its_range():
    _, x = encode(make_frame())
    wild = x + np.random.default_rng(0).normal(0, 1000, x.shape)
    for known in (Domain.of(x), Domain.of(x, keep_integers=True)):
        new = known.settle(wild)
        assert (new >= x.min(axis=0)).all()
        assert (new <= x.max(axis=0)).all()


def test_whole_numbers_stay_whole_only_if_asked_for():
    frame = make_frame()[["size", "rooms"]]
    encoder, x = encode(frame)
    new = mixed(x)
    kept = Domain.of(x, encoder, keep_integers=True).settle(new)
    assert (kept[:, 1] == np.rint(kept[:, 1])).all()
    assert (kept[:, 0] != np.rint(kept[:, 0])).any()
    free = Domain.of(x, encoder).settle(new)
    assert (free[:, 1] != np.rint(free[:, 1])).any()


def test_a_column_of_two_numbers_is_a_flag_where_nothing_else_is_known():
    x = np.array([[-0.04, 1.0], [0.05, 2.0], [0.05, 4.0], [-0.04, 3.0]])
    new = Domain.of(x).settle(np.array([[0.01, 2.5], [0.0, 1.5]]))
    assert new.tolist() == [[0.05, 2.5], [-0.04, 1.5]]


def test_the_rows_that_are_given_are_left_alone():
    encoder, x = encode(make_frame())
    new = mixed(x)
    before = new.copy()
    Domain.of(x, encoder, keep_integers=True).settle(new)
    assert (new == before).all()
