import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regaug.data.tabular.columns import Boolean, Category, Date, Number
from regaug.data.tabular.encoding import Encoder
from regaug.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    DataError,
    NonFiniteError,
    NotFittedError,
)


def column(values, name="a", **options):
    """A frame of one column beside one that is always used."""
    n = len(values)
    spread = np.random.default_rng(0).normal(size=n)
    return pd.DataFrame({name: pd.Series(values, **options), "spread": spread})


def fitted(values, **options):
    """What the encoder makes of one column (None: left out), and its notes about it."""
    encoder = Encoder.fit(column(values, **options))
    found = [known for known in encoder.columns if known.name == "a"]
    return (found[0] if found else None), " ".join(encoder.notes)


def encoded(train, new=None, **options):
    encoder = Encoder.fit(column(train, **options))
    kept = [i for i, name in enumerate(encoder.feature_names) if name != "spread"]
    return encoder.transform(column(train if new is None else new))[:, kept]


def test_numbers_stay():
    values = np.random.default_rng(0).normal(size=30)
    np.testing.assert_array_equal(encoded(values)[:, 0], values.astype(np.float32))
    assert encoded(values).shape == (30, 1)
    assert encoded(values).dtype == np.float32


def test_numbers_far_beyond_those_of_training_count_as_half_of_the_range_beyond():
    encoder = Encoder.fit(pd.DataFrame({"a": [0.0, 4.0, 10.0] * 5}))
    new = pd.DataFrame({"a": [1e30, 14.0, 15.5, -4.0, -1e9, None]})
    assert encoder.transform(new)[:, 0].tolist() == [15.0, 14.0, 15.0, -4.0, -5.0, 4.0]
    largest = float(np.finfo(np.float32).max)
    (column,) = Encoder.fit(pd.DataFrame({"a": [-largest, 0.0, largest] * 5})).columns
    assert (column.low, column.high) == (-largest, largest)


@pytest.mark.parametrize("dtype", ["bool", "boolean", "object", "bool[pyarrow]"])
def test_booleans_become_zero_and_one(dtype):
    values = pd.array([True, False, True] * 10, dtype=dtype)
    assert fitted(values)[0] == Boolean("a", fill=1.0, indicator=False)
    assert encoded(values)[:3, 0].tolist() == [1.0, 0.0, 1.0]


def test_text_true_and_false_are_booleans():
    assert isinstance(fitted(["TRUE", "false", None] * 10)[0], Boolean)


@pytest.mark.parametrize("dtype", ["float64", "Float64", "double[pyarrow]", "object"])
def test_a_gap_becomes_the_median_with_an_indicator(dtype):
    values = pd.array([1.0, 2.0, 9.0, None] * 10, dtype=dtype)
    known, notes = fitted(values)
    assert known == Number("a", fill=2.0, indicator=True, low=-3.0, high=13.0)
    assert "10 gaps became the median 2" in notes
    assert encoded(values)[:4].tolist() == [[1, 0], [2, 0], [9, 0], [2, 1]]


@pytest.mark.parametrize(("gaps", "indicator"), [(1, False), (2, True)])
def test_the_indicator_needs_one_percent_of_the_rows(gaps, indicator):
    values = np.arange(200.0) ** 2
    values[:gaps] = np.nan
    assert fitted(values)[0].indicator is indicator
    assert not np.isnan(encoded(values)).any()


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=40, unique=True))
@settings(max_examples=25, deadline=None)
def test_the_fill_is_the_median(values):
    encoder = Encoder.fit(pd.DataFrame({"a": values, "b": [1.5, *values[1:]]}))
    for known in encoder.columns:
        chosen = values if known.name == "a" else [1.5, *values[1:]]
        assert known.fill == pytest.approx(np.median(chosen), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_an_infinite_value_counts_as_missing_and_is_reported(bad):
    values = np.arange(40.0) ** 2
    values[7] = bad
    known, notes = fitted(values)
    assert "1 infinite value, taken as missing" in notes
    assert encoded(values)[7].tolist() == [np.float32(known.fill), 1.0]


@pytest.mark.parametrize("bad", [1e39, 1e300, -1e300])
def test_a_number_too_large_for_float32_is_the_end_of_the_range(bad):
    values = np.arange(40.0) ** 2
    values[7] = bad
    known, notes = fitted(values)
    assert "1 number too large for float32" in notes
    assert "missing" not in notes
    assert not known.indicator
    end = known.high if bad > 0 else known.low
    assert encoded(values)[7].tolist() == [np.float32(end)]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([3.0] * 30, "constant"),
        (["x"] * 30, "constant"),
        ([True] * 30, "constant"),
        ([1e9 + i / 100 for i in range(30)], "constant"),  # in float32
        ([pd.Timestamp("2024-01-01")] * 30, "one date"),
        ([None] * 30, "no value"),
        ([np.nan] * 30, "no value"),
        ([pd.NaT] * 30, "no value"),
        (list(range(30)), "row numbers"),
        ([float(i) for i in range(1, 31)], "row numbers"),
        ([str(i + 5) for i in range(30)], "row numbers"),
        ([f"id-{i}" for i in range(30)], "tell rows apart"),
        ([f"id-{i % 28}" for i in range(30)], "tell rows apart"),
    ],
)
def test_columns_that_tell_nothing_are_left_out(values, reason):
    known, notes = fitted(values)
    assert known is None
    assert "'a' left out: " in notes
    assert reason in notes


def test_row_numbers_are_known_in_a_random_part_of_the_table():
    frame = column(list(range(100, 200)))
    part = frame.iloc[np.sort(np.random.default_rng(0).permutation(100)[:60])]
    assert [known.name for known in Encoder.fit(part).columns] == ["spread"]


def test_whole_numbers_in_another_order_are_kept():
    assert isinstance(fitted(np.random.default_rng(0).permutation(30))[0], Number)


def test_a_constant_with_gaps_tells_whether_it_is_there():
    assert encoded([4.0, None, 4.0] * 10)[:3].tolist() == [[1, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize("dtype", ["object", "str", "category"])
def test_text_becomes_one_column_per_level(dtype):
    values = pd.Series(["red", "blue", "red"] * 10, dtype=dtype)
    assert fitted(values)[0] == Category("a", ("blue", "red"), other=False, missing=False)
    assert encoded(values)[:3].tolist() == [[0, 1], [1, 0], [0, 1]]


def test_categories_that_are_numbers_stay_categories():
    values = pd.Series([1, 2, 2] * 10).astype("category")
    assert fitted(values)[0].levels == ("1", "2")


def test_rare_levels_are_pooled_and_unseen_ones_join_them():
    train = ["red"] * 20 + ["blue"] * 16 + ["pink"] * 4
    known, notes = fitted(train)
    assert known == Category("a", ("blue", "red"), other=True, missing=False)
    assert "pooled: 1 of 3 levels into (other)" in notes
    assert encoded(train, ["pink", "green", "red", None]).tolist() == [
        [0, 0, 1],
        [0, 0, 1],
        [0, 1, 0],
        [0, 0, 1],
    ]


def test_an_unseen_level_is_all_zeros_where_nothing_was_pooled():
    new = encoded(["red", "blue"] * 10, ["green", None, "red"])
    assert new.tolist() == [[0, 0], [0, 0], [0, 1]]


def test_a_gap_in_text_is_a_level():
    train = ["red", "blue", None, "?", " "] * 8
    assert fitted(train)[0] == Category("a", ("blue", "red"), other=False, missing=True)
    assert encoded(train, [None, "", "green"]).tolist() == [[0, 0, 1], [0, 0, 1], [0, 0, 0]]


def test_at_most_fifty_levels_are_kept():
    rng = np.random.default_rng(0)
    values = [f"v{i}" for i in range(60) for _ in range(100 + i)]
    known, notes = fitted(rng.permutation(values).tolist())
    assert len(known.levels) == 50
    assert set(known.levels) == {f"v{i}" for i in range(10, 60)}
    assert "pooled: 10 of 60" in notes


def test_five_thousand_levels_are_pooled_or_left_out_and_reported():
    rng = np.random.default_rng(0)
    even = [f"v{i % 5000}" for i in range(20_000)]
    known, notes = fitted(even)
    assert known is None
    assert "none of its 5,000 levels is frequent enough" in notes
    skewed = even + ["often"] * 5000
    known, notes = fitted(rng.permutation(skewed).tolist())
    assert known == Category("a", ("often",), other=True, missing=False)
    assert "pooled: 5,000 of 5,001" in notes


def test_a_level_is_the_same_however_it_is_written():
    train = ["007", "A12", "1.0", "TRUE"] * 10
    new = encoded(train, [7, 1, True])
    assert fitted(train)[0].levels == ("1", "7", "A12", "True")
    assert new[0].tolist() == [0, 1, 0, 0]
    np.testing.assert_array_equal(encoded(train, [7.0, 1.0]), encoded(train, ["7", "01"]))


def test_mixed_columns_are_numbers_if_nearly_all_are():
    values = [str(i * i) for i in range(100)]
    values[3:6] = ["n/k", "n/k", "abc"]
    known, notes = fitted(values)
    assert isinstance(known, Number)
    assert "3 values that are no numbers, taken as missing: 'n/k' 2 times, 'abc'" in notes
    assert encoded(values)[3].tolist() == [np.float32(known.fill), 1.0]


def test_mixed_columns_are_categories_otherwise():
    values = ["1", "2", "many"] * 20
    assert fitted(values)[0].levels == ("1", "2", "many")
    assert fitted([1, 2.0, "many"] * 20)[0].levels == ("1", "2", "many")


@pytest.mark.parametrize("as_text", [False, True])
def test_dates_become_days_and_the_time_of_year(as_text):
    dates = pd.Series(pd.date_range("2023-01-01", periods=730, freq="D"))
    train = dates.dt.strftime("%Y-%m-%d") if as_text else dates
    assert Encoder.fit(column(train)).feature_names[:3] == (
        "a days",
        "a year sine",
        "a year cosine",
    )
    x = encoded(train)
    np.testing.assert_allclose(x[:, 0], np.arange(730) - 364.5)
    np.testing.assert_allclose(np.hypot(x[:, 1], x[:, 2]), 1.0, rtol=1e-6)
    np.testing.assert_allclose(x[0, 1:], [0.0, 1.0], atol=1e-6)
    np.testing.assert_allclose(x[365, 1:], [0.0, 1.0], atol=1e-6)


def test_the_hour_is_a_circle_where_it_varies():
    times = pd.Series(pd.date_range("2024-05-01", periods=48, freq="h"))
    known = fitted(times)[0]
    assert (known.year, known.hour) == (True, True)
    x = encoded(times)
    np.testing.assert_allclose(x[6, 3:5], [1.0, 0.0], atol=1e-6)  # six o'clock
    same_day = pd.Series(pd.date_range("2024-05-01", periods=20, freq="min"))
    assert fitted(same_day)[0].year is False


def test_dates_are_the_same_in_every_type():
    dates = pd.Series(pd.date_range("2023-03-01 06:30", periods=40, freq="31h"))
    expected = encoded(dates)
    texts = dates.dt.strftime("%Y/%m/%d %H:%M")
    offset = dates.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    for other in (texts, offset, dates.dt.strftime("%Y-%m-%dT%H:%M:00Z"), dates.astype(object)):
        np.testing.assert_array_equal(encoded(other), expected)
        np.testing.assert_array_equal(encoded(dates, other), expected)
    days = pd.Series(pd.date_range("2023-03-01", periods=40, freq="D"))
    np.testing.assert_array_equal(encoded(days.dt.date), encoded(days))


def test_dates_may_lack_leading_zeros():
    dates = pd.Series(pd.date_range("2023-01-05 07:30", periods=100, freq="61h"))
    texts = [f"{d.year}/{d.month}/{d.day} {d.hour}:{d.minute:02}" for d in dates]
    np.testing.assert_array_equal(encoded(texts), encoded(dates))


def test_a_missing_date_becomes_the_median_with_an_indicator():
    dates = pd.Series(
        ["2024-01-01", None, "2024-01-03", "2024-01-02", "unknown"] + ["2024-01-02"] * 16
    )
    known, notes = fitted(dates)
    assert isinstance(known, Date)
    x = encoded(dates)
    np.testing.assert_array_equal(x[1, :-1], x[3, :-1])
    assert x[:5, -1].tolist() == [0, 1, 0, 0, 1]
    assert "1 value that is no date, taken as missing: 'unknown'" in notes


def test_time_spans_are_numbers_of_days():
    spans = pd.Series(pd.to_timedelta([12, 36, 48] * 10, unit="h"))
    assert encoded(spans)[:3, 0].tolist() == [0.5, 1.5, 2.0]


def test_lists_in_a_column_are_an_error():
    with pytest.raises(DataError, match=r"'a' must hold numbers, text or dates, got .*\[1\]"):
        Encoder.fit(column([[1]] * 30))


def test_no_column_left_is_an_error_with_the_reasons():
    with pytest.raises(DataError, match=r"No input column is left: 'a' left out: constant \(1\)"):
        Encoder.fit(pd.DataFrame({"a": [1] * 30}))


def test_the_frame_is_not_changed():
    frame = column([1.0, np.inf, None, 4.0] * 10)
    before = frame.copy(deep=True)
    Encoder.fit(frame).transform(frame)
    pd.testing.assert_frame_equal(frame, before)


# New tables.


def some_encoder():
    dates = pd.Series(pd.date_range("2024-01-01", periods=40, freq="31h"))
    dates[:3] = pd.NaT
    return Encoder.fit(
        pd.DataFrame(
            {
                "size": [1.0, 2.0, 7.5, None] * 10,
                "city": ["Oslo", "Rome", None, "Rome"] * 10,
                "when": dates,
                "new": [True, False] * 20,
                "fee": ["$1,200", "$30", "$7"] * 13 + ["$8"],
            }
        )
    )


def new_rows():
    return pd.DataFrame(
        {"size": [3.0], "city": ["Rome"], "when": ["2024-02-01"], "new": [False], "fee": ["$5"]},
        index=["x"],
    )


def test_order_and_further_columns_do_not_matter():
    encoder, rows = some_encoder(), new_rows()
    other = rows[["new", "fee", "when", "city", "size"]].assign(extra="?")
    np.testing.assert_array_equal(encoder.transform(other), encoder.transform(rows))


def test_a_column_that_is_not_there_is_an_error_with_a_hint():
    rows = new_rows().rename(columns={"size": "sizes"}).drop(columns="new")
    with pytest.raises(DataError, match=r"lacks 2 .*'size' \(did you mean 'sizes'\?\), 'new'"):
        some_encoder().transform(rows)


def test_an_empty_column_is_imputed():
    encoder = some_encoder()
    x = encoder.transform(new_rows().assign(size=None, city=None, when=None, new=None))
    known = dict(zip(encoder.feature_names, x[0].tolist(), strict=True))
    assert (known["size"], known["size=(missing)"]) == (2.0, 1.0)
    assert known["city=(missing)"] == known["when=(missing)"] == 1.0
    assert known["new"] == 0.5
    assert np.isfinite(x).all()


@pytest.mark.parametrize("name", ["size", "when", "new"])
def test_a_column_without_a_readable_value_is_an_error(name):
    with pytest.raises(DataError, match=f"Column '{name}' must hold .* got 'wrong'"):
        some_encoder().transform(new_rows().assign(**{name: "wrong"}))


def test_no_rows_give_no_rows():
    encoder = some_encoder()
    assert encoder.transform(new_rows().iloc[:0]).shape == (0, len(encoder.feature_names))


def test_a_needed_column_twice_is_an_error():
    rows = pd.concat([new_rows(), new_rows()[["size"]]], axis=1)
    with pytest.raises(DataError, match="unique, got 'size' more than once"):
        some_encoder().transform(rows)


def test_an_encoder_that_saw_nothing_says_so():
    with pytest.raises(NotFittedError, match=r"Encoder.fit\(frame\)"):
        Encoder().transform(new_rows())


def test_arrays_are_refused_with_the_way_out():
    with pytest.raises(ArgumentTypeError, match="to_pandas"):
        Encoder.fit(np.zeros((30, 2)))


# JSON.


def test_json_keeps_everything():
    encoder = some_encoder()
    again = Encoder.from_json(encoder.to_json())
    assert again == encoder
    assert again.to_json() == encoder.to_json()
    np.testing.assert_array_equal(again.transform(new_rows()), encoder.transform(new_rows()))


def content_with(columns):
    """JSON of an encoder with these columns and nothing else."""
    content = {"format": "regaug-encoder", "version": 3, "columns": columns}
    return json.dumps(content | {"notes": [], "readings": []})


def changed(**changes):
    """JSON of an encoder in which members of the first column of a kind are replaced."""
    content = json.loads(some_encoder().to_json())
    kind = changes.pop("of", "number")
    items = content["readings"] if kind == "reading" else content["columns"]
    next(item for item in items if kind in ("reading", item["kind"])).update(changes)
    return json.dumps(content)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "{" * 100_000,
        "[" * 100_000,
        "__import__('os').system('true')",
        some_encoder().to_json()[:-5],
        some_encoder().to_json().replace('"version": 3', '"version": 4'),
        some_encoder().to_json().replace('"version": 3', '"version": true, "version": 3'),
        some_encoder().to_json().replace("regaug-encoder", "pickle"),
        content_with([]),
        content_with([3]),
        content_with({"a": 1}),
        changed(of="reading", decimal=";"),
        changed(of="reading", decimal=3),
        changed(of="reading", forms="$#"),
        changed(of="reading", forms=["$#", "#km"]),
        changed(of="reading", factors=["1"]),
        changed(of="reading", factors=[float("nan")]),
        changed(of="reading", kind="regex"),
        changed(of="reading", kind="date"),
        changed(of="reading", name=None),
        changed(fill=float("nan")),
        changed(fill=float("inf")),
        changed(fill=1e39),
        changed(fill=True),
        changed(fill="1"),
        changed(fill=10**400),
        changed(fill=None),
        changed(low=5.0, high=4.0),
        changed(indicator=1),
        changed(name=3),
        changed(name="city"),
        changed(kind="module"),
        changed(kind=["number"]),
        changed(more=1),
        changed(of="category", levels="Oslo"),
        changed(of="category", levels=["Oslo", "Oslo"]),
        changed(of="category", levels=["Oslo", 3]),
        changed(of="category", levels=[str(i) for i in range(51)]),
        changed(of="category", levels=[], other=False, missing=False),
        changed(of="date", mean=1e30),
        changed(of="date", fill=-1e7),
        some_encoder().to_json().replace('"notes": [', '"notes": [3, '),
    ],
)
def test_damaged_or_hostile_json_is_an_error(text):
    with pytest.raises(DataError, match="does not describe an encoder"):
        Encoder.from_json(text)


def test_an_encoder_of_another_version_is_refused_with_the_way_out():
    text = some_encoder().to_json().replace('"version": 3', '"version": 2')
    with pytest.raises(DataError, match="version 2 and this regaug reads version 3. Fit the model"):
        Encoder.from_json(text)


def test_json_must_be_text():
    with pytest.raises(ArgumentTypeError, match="`text` must be a str"):
        Encoder.from_json(b"{}")


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
@settings(max_examples=25, deadline=None)
def test_any_member_of_a_wrong_kind_is_an_error(value):
    content = json.loads(some_encoder().to_json())
    content["columns"][1]["levels"] = value
    if value != [] and not (isinstance(value, list) and all(isinstance(v, str) for v in value)):
        with pytest.raises(DataError):
            Encoder.from_json(json.dumps(content))


@given(
    st.lists(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        min_size=20,
        max_size=40,
    )
)
@settings(max_examples=50, deadline=None)
def test_any_column_gives_finite_numbers_and_survives_json(values):
    frame = column(values, dtype=object)
    encoder = Encoder.from_json(Encoder.fit(frame).to_json())
    x = encoder.transform(frame)
    assert x.shape == (len(values), len(encoder.feature_names))
    assert np.isfinite(x).all()


def test_decoding_is_the_way_back():
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "size": rng.uniform(30, 200, n).round(1),
            "city": rng.choice(["Oslo", "Rome", "Łódź"], n),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "garden": rng.random(n) < 0.4,
        }
    )
    frame.loc[::7, ["size", "sold"]] = None
    frame.loc[::9, "city"] = None
    encoder = Encoder.fit(frame)
    back = encoder.decode(encoder.transform(frame))
    assert list(back.columns) == list(frame.columns)
    pd.testing.assert_frame_equal(
        back.drop(columns=["sold", "city"]), frame.drop(columns=["sold", "city"])
    )
    assert (
        back["city"].where(back["city"].notna(), "").tolist() == frame["city"].fillna("").tolist()
    )
    assert (back["sold"].isna() == frame["sold"].isna()).all()
    assert (back["sold"] - frame["sold"]).abs().max() < pd.Timedelta(1, "min")


@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=8, max_size=30),
    st.lists(st.sampled_from(["a", "b", "c", None]), min_size=8, max_size=30),
    st.lists(st.one_of(st.booleans(), st.none()), min_size=8, max_size=30),
    st.lists(st.one_of(st.dates(), st.none()), min_size=8, max_size=30),
)
def test_what_was_decoded_is_encoded_to_the_same(numbers, texts, flags, dates):
    n = min(len(numbers), len(texts), len(flags), len(dates))
    frame = pd.DataFrame(
        {
            "number": numbers[:n],
            "text": pd.Series(texts[:n], dtype=object),
            "flag": pd.Series(flags[:n], dtype=object),
            "date": pd.Series([None if d is None else d.isoformat() for d in dates[:n]]),
            "spread": np.random.default_rng(0).normal(size=n),
        }
    )
    encoder = Encoder.fit(frame)
    x = encoder.transform(frame)
    again = encoder.transform(encoder.decode(x))
    names = list(encoder.feature_names)
    exact = [i for i, name in enumerate(names) if not name.startswith("date ")]
    np.testing.assert_array_equal(again[:, exact], x[:, exact])
    # A day of float32 far from the mean may fall into the day, or the year, before.
    days = [i for i, name in enumerate(names) if name == "date days"]
    np.testing.assert_allclose(again[:, days], x[:, days], rtol=1e-6, atol=1e-3)


def test_decoded_numbers_have_the_digits_they_had():
    frame = column([0.1, 50.1, 1234.56, 1e-7, 3e30] * 5)
    encoder = Encoder.fit(frame)
    assert encoder.decode(encoder.transform(frame))["a"].tolist() == frame["a"].tolist()


def test_the_largest_of_its_columns_is_the_level():
    encoder = Encoder((Category("a", ("x", "y"), other=True, missing=True),))
    rows = [[0.6, 0.2, 0.1, 0.1], [0.1, 0.3, 0.2, 0.2], [0.1, 0, 0.9, 0], [0, -0.4, 0.6, 0.8]]
    back = encoder.decode(np.array(rows))["a"]
    assert back.tolist()[:3] == ["x", "y", "(other)"]
    assert back.isna().tolist() == [False, False, False, True]


def test_hardly_any_level_is_a_gap():
    encoder = Encoder((Category("a", ("x", "y"), other=False, missing=False),))
    back = encoder.decode(np.array([[0.0, 0.0], [0.3, 0.1], [0.4, 0.3]]))["a"]
    assert back.isna().tolist() == [True, True, False]
    assert back[2] == "x"


def test_an_indicator_above_one_half_is_a_gap():
    encoder = Encoder(
        (
            Number("n", fill=1.0, indicator=True),
            Boolean("b", fill=1.0, indicator=True),
            Date("d", mean=0.0, fill=0.0, year=False, hour=False, indicator=True),
        )
    )
    back = encoder.decode(np.array([[2.0, 0.4, 0.7, 0.4, 1.5, 0.4], [2.0, 0.6] * 3]))
    assert back["n"].tolist()[0] == 2.0
    assert back["b"].tolist() == [True, None]
    assert back["d"].tolist()[0] == pd.Timestamp("1970-01-02 12:00")
    assert back.isna().to_numpy().tolist() == [[False] * 3, [True] * 3]


def test_decoding_a_date_beyond_all_years_stays_a_date():
    encoder = Encoder((Date("d", mean=0.0, fill=0.0, year=False, hour=False, indicator=False),))
    assert encoder.decode(np.array([[1e30], [-1e30]]))["d"].notna().all()


def test_decoding_checks_what_it_is_given():
    encoder = Encoder((Number("n", fill=1.0, indicator=True),))
    with pytest.raises(ArgumentError, match=r"`x` must be \(n, 2\), got shape \(3, 1\)"):
        encoder.decode(np.zeros((3, 1)))
    with pytest.raises(NonFiniteError, match="`x` must be finite"):
        encoder.decode(np.array([[np.nan, 0.0]]))
    with pytest.raises(NotFittedError):
        Encoder().decode(np.zeros((3, 0)))
    assert encoder.decode(np.zeros((0, 2))).shape == (0, 1)
