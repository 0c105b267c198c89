"""New rows for estimators: what comes first, what is kept, and that only training folds grow."""

import sys
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imblearn.base import is_sampler
from imblearn.pipeline import Pipeline, make_pipeline
from imblearn.utils.estimator_checks import estimator_checks_generator
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from regaug import methods
from regaug.data import load
from regaug.exceptions import ArgumentError, ArgumentTypeError, DataError, NonFiniteError
from regaug.integrations.sklearn import AugmentingSampler

ON_INPUTS = [name for name in methods.names() if methods.get(name).as_maker() is not None]


def make_arrays(n=60, d=4, m=None, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * [1.0, 100.0, 0.01, 5.0][:d]
    y = x @ rng.normal(size=(d, m or 1)) + rng.normal(size=(n, m or 1))
    return x, y if m else y[:, 0]


def make_frame(n=80, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(30, 200, n),
            "rooms": rng.integers(1, 8, n),
            "stars": pd.array(rng.integers(1, 6, n), dtype="Int64"),
            "new": rng.random(n) < 0.4,
            "city": rng.choice(["Oslo", "Rome", "Lima"], n),
            "class": pd.Categorical(rng.choice(["a", "b"], n), categories=["a", "b", "never"]),
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
            "height": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(2, 4, n)),
            "country": "Norway",
            "remark": None,
            "code": [f"no. {i}" for i in range(n)],
            "hash": rng.integers(2**60, 2**62, n),
        },
        index=rng.permutation(n) + 1000,
    )
    return frame, pd.Series(3 * frame["size"] + rng.normal(size=n), name="price")


@pytest.mark.parametrize("method", ON_INPUTS)
def test_originals_come_first_and_new_rows_follow(method):
    x, y = make_arrays()
    new_x, new_y = AugmentingSampler(method, random_state=0).fit_resample(x, y)
    assert new_x.shape == (120, 4)
    assert new_y.shape == (120,)
    np.testing.assert_array_equal(new_x[:60], x)
    np.testing.assert_array_equal(new_y[:60], y)
    assert (~np.isin(new_y[60:], y)).mean() > 0.5
    assert np.isfinite(new_x).all()


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-100, 1e154, 1e300])
@pytest.mark.parametrize("method", ["foma-rho", "cems", "ada", "smogn"])
def test_numbers_whose_squares_are_infinite_or_zero_make_the_same_rows(method, size):
    x, y = make_arrays()
    sampler = AugmentingSampler(method, random_state=0)
    for new, expected in zip(
        sampler.fit_resample(size * x, size * y), sampler.fit_resample(x, y), strict=True
    ):
        np.testing.assert_allclose(new / size, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("rows", "added"), [(1.0, 60), (0.25, 15), (3.0, 180), (7, 7), (1, 1)])
def test_rows_is_a_share_or_a_number(rows, added):
    x, y = make_arrays()
    assert len(AugmentingSampler("mixup", rows=rows).fit_resample(x, y)[1]) == 60 + added


@pytest.mark.parametrize("rows", [0, 0.0])
def test_no_rows_leave_all_as_it_was(rows):
    x, y = make_arrays()
    new_x, new_y = AugmentingSampler("mixup", rows=rows).fit_resample(x, y)
    np.testing.assert_array_equal(new_x, x)
    np.testing.assert_array_equal(new_y, y)


@given(
    n=st.integers(1, 40),
    d=st.integers(1, 4),
    m=st.sampled_from([None, 1, 3]),
    method=st.sampled_from(["noise", "mixup", "c-mixup", "foma", "foma-rho"]),
    dtype=st.sampled_from([np.float64, np.float32, np.int64, np.uint8]),
)
def test_shape_type_and_range_are_kept(n, d, m, method, dtype):
    x, y = make_arrays(n, d, m)
    x, y = (x % 250).astype(dtype), (y % 250).astype(dtype)
    before = x.copy(), y.copy()
    new_x, new_y = AugmentingSampler(method, rows=5, random_state=1).fit_resample(x, y)
    for new, own, kept in zip((new_x, new_y), (x, y), before, strict=True):
        np.testing.assert_array_equal(own, kept)
        np.testing.assert_array_equal(new[:n], own)
        assert new.dtype == dtype
        assert new.shape == (n + 5, *own.shape[1:])
        assert (new.min(axis=0) == own.min(axis=0)).all()
        assert (new.max(axis=0) == own.max(axis=0)).all()


def test_a_few_values_in_a_numeric_array_are_numbers_not_categories():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.choice([0.0, 1.0, 2.0], 200), rng.normal(size=200)])
    new, _ = AugmentingSampler("mixup", random_state=0).fit_resample(x, x.sum(axis=1))
    assert ((new[200:, 0] % 1) > 0).mean() > 0.5


def test_row_numbers_in_an_array_are_numbers_too():
    x = np.arange(50.0)[:, None]
    new, _ = AugmentingSampler("mixup", random_state=0).fit_resample(x, x[:, 0] ** 2)
    assert len(np.unique(new)) > 60


def test_a_relation_between_inputs_and_targets_is_kept():
    x = np.random.default_rng(0).uniform(-3, 8, size=(100, 1))
    for method in ("mixup", "c-mixup", "cems", "foma"):  # on a line each of them stays there
        new_x, new_y = AugmentingSampler(method, random_state=0).fit_resample(x, 3 * x[:, 0] + 7)
        np.testing.assert_allclose(new_y, 3 * new_x[:, 0] + 7, rtol=1e-6)


def test_a_frame_of_numbers_gives_the_rows_of_the_array():
    x, y = make_arrays(m=2)
    sampler = AugmentingSampler("cems", random_state=3)
    new_x, new_y = sampler.fit_resample(x, y)
    frame, targets = sampler.fit_resample(
        pd.DataFrame(x, columns=list("abcd")), pd.DataFrame(y, columns=["p", "q"])
    )
    np.testing.assert_array_equal(frame, new_x)
    np.testing.assert_array_equal(targets, new_y)
    assert list(frame) == list("abcd")
    assert list(targets) == ["p", "q"]
    assert list(sampler.feature_names_in_) == list("abcd")


@pytest.mark.parametrize("method", ON_INPUTS)
def test_a_frame_keeps_names_types_and_kinds_of_values(method):
    frame, y = make_frame()
    before = frame.copy()
    sampler = AugmentingSampler(method, rows=200, random_state=0)
    new, new_y = sampler.fit_resample(frame, y)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(new.head(80), frame.reset_index(drop=True))
    pd.testing.assert_series_equal(new_y.head(80), y.reset_index(drop=True))
    assert new.dtypes.equals(frame.dtypes)
    assert new_y.name == "price"
    assert len(new) == len(new_y) == 280
    assert new.index.equals(pd.RangeIndex(280))
    for name in ("city", "class", "new", "country", "code", "hash"):
        assert set(new[name]) <= set(frame[name])
    for name in ("size", "rooms", "stars", "height", "sold"):
        assert new[name].max() == frame[name].max()
        assert new[name].min() == frame[name].min()
    assert new["remark"].isna().all()
    assert (new["sold"] == new["sold"].dt.normalize()).all()
    assert 0.0 < new["height"].tail(200).isna().mean() < 0.5


def test_a_text_of_its_own_stays_with_the_row_it_belongs_to():
    frame, y = make_frame()
    calm = AugmentingSampler("noise", method_settings={"sigma": 1e-6}, random_state=0)
    new = calm.fit_resample(frame, y)[0].tail(80)
    own = frame.set_index("code").loc[new["code"]]
    np.testing.assert_allclose(new["size"], own["size"], rtol=1e-4)
    assert (new["city"].to_numpy() == own["city"].to_numpy()).all()


def test_columns_may_have_numbers_as_names():
    x, y = make_arrays(d=3)
    new, _ = AugmentingSampler("mixup").fit_resample(pd.DataFrame(x), y)
    assert list(new.columns) == [0, 1, 2]
    assert new.shape == (120, 3)


def test_targets_keep_their_kind():
    x, y = make_arrays(m=2)
    frame = pd.DataFrame({"level": y[:, 0], "visits": np.rint(y[:, 1]).astype(int)})
    _, new = AugmentingSampler("mixup", random_state=0).fit_resample(x, frame)
    assert new.dtypes.equals(frame.dtypes)
    _, new = AugmentingSampler("mixup", random_state=0).fit_resample(x, frame["visits"])
    assert new.dtype == int
    assert new.name == "visits"
    _, new = AugmentingSampler("mixup", random_state=0).fit_resample(x.tolist(), y[:, :1].tolist())
    assert np.shape(new) == (120, 1)


def test_random_state_decides():
    x, y = make_arrays()
    first, again, other = (
        AugmentingSampler("mixup", random_state=s).fit_resample(x, y)[0] for s in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    sampler = AugmentingSampler("mixup", random_state=np.random.RandomState(0))
    assert (sampler.fit_resample(x, y)[0] != sampler.fit_resample(x, y)[0]).any()


def test_settings_of_the_method_matter():
    x, y = make_arrays()
    for sigma in (0.0, 1.0):
        settings = {"sigma": sigma}
        sampler = AugmentingSampler("noise", method_settings=settings, random_state=0)
        new = sampler.fit_resample(x, y)[1][60:]
        distance = np.abs(new[:, None] - y).min(axis=1).max()
        assert distance < 1e-9 if sigma == 0.0 else distance > 1e-3


class Working(AugmentingSampler):
    """Makes rows when the checks call ``fit``."""

    def fit(self, X, y):  # noqa: N803
        self.fit_resample(X, y)
        return self


@pytest.mark.parametrize("sampler", [AugmentingSampler, Working])
def test_scikit_learns_checks_pass(sampler):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks that are skipped say so
        results = check_estimator(sampler(random_state=0), on_fail=None)
    counts = pd.Series([result["status"] for result in results]).value_counts()
    print(f"check_estimator({sampler.__name__}): {counts['passed']} passed of {len(results)}")
    assert [r["check_name"] for r in results if r["status"] not in ("passed", "skipped")] == []
    # The one about arrays of other libraries needs an environment variable before SciPy's import.
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {
        "check_array_api_input"
    }


class Recorder(RegressorMixin, BaseEstimator):
    """Remembers how many rows it was given, and when."""

    def fit(self, X, y):  # noqa: N803
        self.trained_, self.asked_ = X.copy(), []
        self.mean_ = np.mean(y)
        return self

    def predict(self, X):  # noqa: N803
        self.asked_.append(X.copy())
        return np.full(len(X), self.mean_)


def test_predict_and_score_do_not_resample():
    x, y = make_arrays()
    model = make_pipeline(AugmentingSampler("mixup", random_state=0), Recorder()).fit(
        x[:40], y[:40]
    )
    assert len(model[-1].trained_) == 80
    assert len(model.predict(x)) == 60
    model.score(x[40:], y[40:])
    np.testing.assert_array_equal(model[-1].asked_[0], x)
    np.testing.assert_array_equal(model[-1].asked_[1], x[40:])


def test_only_training_folds_are_resampled():
    x, y = make_arrays(n=60)
    seen = []

    class Spy(AugmentingSampler):
        def fit_resample(self, X, y):  # noqa: N803
            seen.append(X)
            return super().fit_resample(X, y)

    folds = KFold(3)
    cross_val_score(make_pipeline(Spy("mixup"), Ridge()), x, y, cv=folds)
    for rows, (train, _) in zip(seen, folds.split(x), strict=True):
        np.testing.assert_array_equal(rows, x[train])


@pytest.mark.slow
def test_a_grid_chooses_method_and_rows_in_several_processes():
    x, y = make_arrays(n=90)
    steps = [
        ("scale", StandardScaler()),
        ("sampler", AugmentingSampler("noise", random_state=0)),
        ("model", Ridge()),
    ]
    grid = {"sampler__method": ["noise", "foma-rho"], "sampler__rows": [0, 0.5, 20]}
    search = GridSearchCV(Pipeline(steps), grid, cv=3, n_jobs=2, error_score="raise").fit(x, y)
    assert len(set(search.cv_results_["mean_test_score"])) > 2
    again = clone(search.best_estimator_).fit(x, y)
    np.testing.assert_array_equal(again.predict(x), search.predict(x))


def test_a_frame_with_gaps_goes_through_a_pipeline_with_boosting():
    frame, y = make_frame(200)
    frame = frame.drop(columns=["remark", "code", "sold"]).astype({"city": "category"})
    boosting = HistGradientBoostingRegressor(
        categorical_features="from_dtype", max_iter=20, random_state=0
    )
    frame = frame.drop(columns="country")
    model = make_pipeline(AugmentingSampler("cems", random_state=0), boosting)
    assert cross_val_score(model, frame, y, cv=3, error_score="raise").mean() > 0.8


@pytest.mark.parametrize("name", ["diabetes", "airfoil"])
def test_boosting_in_a_grid_on_real_tables(name, request, monkeypatch):
    if name != "diabetes":  # which comes with scikit-learn
        monkeypatch.setenv("REGAUG_DATA", str(request.getfixturevalue("real_data")))
    data = load(name)
    x, y = data.x, data.y[:, 0]
    test = data.split(0).test.rows
    train = np.setdiff1d(np.arange(len(y)), test)
    boosting = HistGradientBoostingRegressor(max_iter=60, random_state=0)
    steps = [("sampler", AugmentingSampler(random_state=0)), ("model", boosting)]
    grid = {"sampler__method": ["foma-rho", "c-mixup", "cems"], "sampler__rows": [0, 1.0]}
    search = GridSearchCV(
        Pipeline(steps), grid, cv=3, scoring="neg_root_mean_squared_error", error_score="raise"
    ).fit(x[train], y[train])
    error = -search.score(x[test], y[test])
    plain = boosting.fit(x[train], y[train]).predict(x[test])
    plain_error = np.sqrt(np.mean((plain - y[test]) ** 2))
    print(f"{name}: {search.best_params_}, test RMSE {error:.3f}, plain {plain_error:.3f}")
    # The grid holds "no new rows", so a search that chose badly is the most that can go wrong.
    assert error < 1.1 * plain_error


def test_imbalanced_learn_is_not_needed(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "imblearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "imblearn", None)
    monkeypatch.delitem(sys.modules, "regaug.integrations.sklearn.sampler")
    from regaug.integrations.sklearn.sampler import AugmentingSampler as Fresh

    x, y = make_arrays()
    assert Fresh is not AugmentingSampler
    assert len(Fresh("mixup").fit_resample(x, y)[0]) == 120


def test_the_baseline_of_a_grid_over_methods_returns_the_rows_as_they_are():
    x, y = make_arrays()
    for data in ((x, y), (x.tolist(), y.tolist()), (pd.DataFrame(x), pd.Series(y))):
        new_x, new_y = AugmentingSampler("erm", rows=2.0).fit_resample(*data)
        assert type(new_x) is type(data[0])
        np.testing.assert_array_equal(new_x, x)
        np.testing.assert_array_equal(new_y, y)
    model = Pipeline([("sampler", AugmentingSampler(random_state=0)), ("model", Ridge())])
    grid = GridSearchCV(model, {"sampler__method": ["erm", "mixup"]}, cv=2, error_score="raise")
    scores = grid.fit(x, y).cv_results_["mean_test_score"]
    assert scores[0] == pytest.approx(cross_val_score(Ridge(), x, y, cv=2).mean())


CONTAINERS = {
    "list": lambda x, y: (x.tolist(), y.tolist()),
    "csr_matrix": lambda x, y: (sparse.csr_matrix(x), y),
    "csc_array": lambda x, y: (sparse.csc_array(x), y),
    "polars": lambda x, y: (polars.DataFrame(x, schema=list("abcd")), polars.Series("y", y)),
    "two targets": lambda x, y: (polars.DataFrame(x), polars.DataFrame({"u": y, "v": -y})),
    "arrow": lambda x, y: (polars.DataFrame(x).to_arrow(), pyarrow.array(y)),
    "batch": lambda x, y: (polars.DataFrame(x).to_arrow().to_batches()[0], y),
    "chunked": lambda x, y: (polars.DataFrame(x).to_arrow(), pyarrow.chunked_array([y[:9], y[9:]])),
}


def as_array(data):
    if sparse.issparse(data):
        return data.toarray()
    return np.asarray(data.to_pandas() if hasattr(data, "to_pandas") else data)


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("rows", [0, 1.0])
def test_what_came_in_another_form_goes_in_that_form(kind, rows):
    x, y = make_arrays()
    data = CONTAINERS[kind](x, y)
    # A frame of numbers has the rows of an array.
    wide = as_array(data[1])
    expected = AugmentingSampler(random_state=0, rows=rows).fit_resample(x, wide)
    sampler = AugmentingSampler(random_state=0, rows=rows)
    found = sampler.fit(*data).fit_resample(*data)
    for own, new, values in zip(data, found, expected, strict=True):
        assert type(new) is type(own)
        np.testing.assert_allclose(as_array(new), values, rtol=1e-12)
        if hasattr(own, "schema"):
            assert new.schema == own.schema


def test_decimals_are_numbers_and_come_back_as_decimals():
    x, _ = make_arrays()
    cents = np.rint(100 * x[:, 0]) / 100
    kind = pyarrow.decimal128(10, 2)
    decimals = pyarrow.array([Decimal(f"{value:.2f}") for value in cents], kind)
    table = pyarrow.table({"price": decimals, "size": x[:, 1]})
    sampler = AugmentingSampler("mixup", random_state=0)
    new, new_y = sampler.fit_resample(table, decimals)
    assert new.schema == table.schema
    assert new[: len(x)].equals(table)
    assert new_y.type == kind
    expected, _ = sampler.fit_resample(np.column_stack([cents, x[:, 1]]), cents)
    found = np.array(new["price"].to_pylist(), dtype=float)
    assert np.abs(found - expected[:, 0]).max() <= 0.01


def test_a_frame_of_polars_keeps_the_types_of_its_columns():
    frame, y = make_frame()
    frame = frame.drop(columns=["remark", "code"])
    table = polars.from_pandas(frame).with_columns(polars.col("sold").cast(polars.Date))
    for data in (table, table.to_arrow()):
        new, _ = AugmentingSampler("mixup", random_state=0).fit_resample(data, y.to_numpy())
        assert type(new) is type(data)
        assert new.schema == data.schema
        assert new.shape == (160, 10)
        assert new[: len(frame)].equals(data)


# About balancing classes, which a regression does not have, or about transforming columns.
NOT_OURS = {
    "check_target_type",
    "check_samplers_one_label",
    "check_samplers_fit",
    "check_samplers_multiclass_ova",
    "check_sampler_get_feature_names_out",
    "check_sampler_get_feature_names_out_pandas",
}
# What imbalanced-learn's `parametrize_with_checks` goes through.
CHECKS = {
    check.func.__name__: check
    for _, check in estimator_checks_generator(AugmentingSampler("mixup", random_state=0))
}


@pytest.mark.parametrize("name", sorted(CHECKS.keys() - NOT_OURS))
def test_imbalanced_learns_checks_pass_but_for_those_of_classes(name):
    CHECKS[name](AugmentingSampler("mixup", random_state=0))


def test_imbalanced_learn_knows_it_for_a_sampler():
    assert is_sampler(AugmentingSampler())
    assert AugmentingSampler().__sklearn_tags__().sampler_tags is not None


def test_methods_that_make_no_rows_are_refused():
    x, y = make_arrays()
    with pytest.raises(ArgumentError, match="`method` must make new rows, got 'rare'"):
        AugmentingSampler("rare").fit_resample(x, y)
    with pytest.raises(ArgumentError, match="`method` must act on inputs, got 'manifold-mixup'"):
        AugmentingSampler("manifold-mixup").fit_resample(x, y)
    with pytest.raises(ArgumentError, match="`method` must act on inputs, got 'foma' at 'layer'"):
        AugmentingSampler("foma", method_settings={"place": "layer"}).fit_resample(x, y)
    with pytest.raises(LookupError, match="Did you mean 'mixup'"):
        AugmentingSampler("mixap").fit_resample(x, y)


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        (-1, ArgumentError, "`rows` must be at least 0, got -1"),
        (-0.5, ArgumentError, "`rows` must be at least 0, got -0.5"),
        (float("inf"), ArgumentError, "`rows` must be at least 0, got inf"),
        (True, ArgumentTypeError, "`rows` must be a whole number, got True"),
        ("many", ArgumentTypeError, "`rows` must be a number, got 'many'"),
    ],
)
def test_wrong_rows_are_named(rows, error, words):
    with pytest.raises(error, match=words):
        AugmentingSampler("mixup", rows=rows).fit_resample(*make_arrays())


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "mixap"}, "Did you mean 'mixup'"),
        ({"method": "manifold-mixup"}, "`method` must act on inputs"),
        ({"method": 3}, "`method` must be the name"),
        ({"method_settings": {"rhoo": 1}}, "Unknown setting 'rhoo'"),
        ({"method_settings": {"alpha": -1.0}}, "`alpha`"),
        ({"method_settings": 3}, "`method_settings` must be a dict"),
        ({"rows": -1}, "`rows`"),
        ({"rows": "many"}, "`rows`"),
        ({"random_state": "a"}, "cannot be used to seed"),
    ],
)
@pytest.mark.parametrize("call", ["fit", "fit_resample"])
def test_wrong_parameters_are_refused_by_both_calls(parameters, words, call):
    sampler = AugmentingSampler(**parameters)
    with pytest.raises((ValueError, TypeError), match=words):
        getattr(sampler, call)(*make_arrays())


def test_inputs_that_cannot_be_used_are_refused():
    x, y = make_arrays()
    sampler = AugmentingSampler("mixup")
    holes = np.where(np.arange(4) == 2, np.nan, x)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        sampler.fit_resample(holes, y)
    with pytest.raises(NonFiniteError, match="Column 'a' must be finite, got infinity"):
        sampler.fit_resample(pd.DataFrame({"a": np.full(60, np.inf)}), y)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        sampler.fit_resample(x, np.full(60, np.nan))
    with pytest.raises(ValueError, match="Input y contains NaN"):
        sampler.fit_resample(pd.DataFrame(x), pd.Series(np.full(60, np.nan)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        sampler.fit_resample(x, y[:50])
    with pytest.raises(ValueError, match="requires y to be passed"):
        sampler.fit_resample(pd.DataFrame(x), None)
    with pytest.raises(ArgumentTypeError, match="`y` must hold numbers to predict, got bool"):
        sampler.fit_resample(x, y > 0)
    with pytest.raises(DataError, match="`X` must have a column of numbers"):
        sampler.fit_resample(pd.DataFrame({"id": [f"no. {i}" for i in range(60)]}), y)
    with pytest.raises(DataError, match=r"2\^53 must be given as floats"):
        sampler.fit_resample(np.full((60, 2), 2**60), y)


def test_constant_columns_and_targets_stay_constant():
    x = np.column_stack([np.full(30, 7.0), np.random.default_rng(0).normal(size=30)])
    for method in ("foma-rho", "mixup", "noise"):
        new_x, new_y = AugmentingSampler(method).fit_resample(x, np.full(30, 0.1))
        assert set(new_x[:, 0]) == {7.0}
        assert set(new_y) == {0.1}
