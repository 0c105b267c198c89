import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regaug.data.splits import group_split, ordered_group_split, random_split, time_split
from regaug.exceptions import ArgumentError, ArgumentTypeError

seeds = st.integers(0, 2**40)
# Few different values in long lists: large groups, and groups of one row.
group_lists = st.lists(st.integers(-3, 12), min_size=3, max_size=80).filter(
    lambda groups: len(set(groups)) >= 3
)
share_triples = st.tuples(*[st.integers(1, 20)] * 3).map(
    lambda weights: tuple(weight / sum(weights) for weight in weights)
)


def assert_parts_of(parts, n):
    assert all(len(rows) > 0 for rows in parts)
    assert all(rows.dtype == np.int64 and bool((np.diff(rows) > 0).all()) for rows in parts)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n))


def assert_whole_groups(parts, groups):
    held = [set(np.asarray(groups)[rows].tolist()) for rows in parts]
    assert held[0] | held[1] | held[2] == set(groups)
    assert sum(len(part) for part in held) == len(set(groups))


def distance_from(shares, sizes):
    """How far the two borders are from where the shares put them, in rows."""
    n = sum(sizes)
    return abs(sizes[0] - shares[0] * n) + abs(sizes[0] + sizes[1] - (shares[0] + shares[1]) * n)


def best_distance(shares, counts):
    """The same for the best two cuts of an order of groups, found by trying all."""
    k = len(counts)
    return min(
        distance_from(shares, (sum(counts[:i]), sum(counts[i:j]), sum(counts[j:])))
        for i in range(1, k - 1)
        for j in range(i + 1, k)
    )


@given(st.integers(3, 200), share_triples, seeds)
def test_random_split_deals_every_row_once(n, shares, seed):
    parts = random_split(n, shares=shares, seed=seed)
    assert_parts_of(parts, n)
    sizes = [len(rows) for rows in parts]
    assert distance_from(shares, sizes) == pytest.approx(best_distance(shares, [1] * n))


@given(st.tuples(*[st.integers(1, 60)] * 3), seeds)
def test_random_split_by_sizes_has_these_sizes(sizes, seed):
    parts = random_split(sum(sizes), sizes=sizes, seed=seed)
    assert_parts_of(parts, sum(sizes))
    assert tuple(len(rows) for rows in parts) == sizes


def test_random_split_depends_on_the_seed_alone():
    first, again, other = (random_split(100, seed=seed) for seed in (7, 7, 8))
    np.random.seed(0)  # noqa: NPY002 - the global generator must not matter
    later = random_split(100, seed=7)
    for rows, same, latest in zip(first, again, later, strict=True):
        np.testing.assert_array_equal(rows, same)
        np.testing.assert_array_equal(rows, latest)
    assert not np.array_equal(first[0], other[0])


def test_every_row_is_tested_under_some_seed():
    tested = {row for seed in range(60) for row in random_split(20, seed=seed)[2].tolist()}
    assert tested == set(range(20))


def test_the_split_is_not_the_order_of_a_sampler_of_the_same_seed():
    drawn = np.random.default_rng((3, 0)).permutation(100)
    assert not np.array_equal(np.sort(drawn[:60]), random_split(100, seed=3)[0])


@given(group_lists, share_triples, seeds)
def test_group_split_keeps_groups_whole(groups, shares, seed):
    parts = group_split(groups, shares=shares, seed=seed)
    assert_parts_of(parts, len(groups))
    assert_whole_groups(parts, groups)


@given(group_lists, share_triples, seeds)
def test_group_split_does_not_depend_on_the_order_of_rows(groups, shares, seed):
    flipped = groups[::-1]
    parts = group_split(groups, shares=shares, seed=seed)
    for rows, turned in zip(parts, group_split(flipped, shares=shares, seed=seed), strict=True):
        assert {groups[row] for row in rows} == {flipped[row] for row in turned}


def test_group_split_meets_the_shares_where_equal_groups_can():
    groups = np.repeat(np.arange(10), 7)
    assert [len(rows) for rows in group_split(groups, seed=0)] == [42, 14, 14]


@pytest.mark.parametrize("seed", range(20))
def test_group_split_misses_a_border_by_half_a_group_at_most(seed):
    groups = np.repeat(np.arange(40), np.arange(1, 41))
    train, validation, _ = (len(rows) for rows in group_split(groups, seed=seed))
    assert abs(train - 0.6 * len(groups)) <= 20
    assert abs(train + validation - 0.8 * len(groups)) <= 20


def test_group_split_with_three_groups_gives_one_to_each_part():
    parts = group_split(["b", "a", "c", "b"], seed=0)
    assert [len({"bacb"[row] for row in rows}) for rows in parts] == [1, 1, 1]


def test_other_seeds_hold_out_other_groups_even_if_sizes_differ():
    groups = np.repeat(np.arange(5), [50, 20, 10, 10, 10])
    held_out = {tuple(set(groups[group_split(groups, seed=seed)[2]])) for seed in range(50)}
    assert len(held_out) >= 5


@given(group_lists, share_triples)
def test_time_split_is_chronological_and_nearest_to_the_shares(times, shares):
    parts = time_split(times, shares=shares)
    assert_parts_of(parts, len(times))
    at = np.array(times)
    train, validation, test = (at[rows] for rows in parts)
    assert train.max() < validation.min()  # strictly: no time lies on both sides
    assert validation.max() < test.min()
    counts = np.unique(at, return_counts=True)[1].tolist()
    sizes = [len(rows) for rows in parts]
    assert distance_from(shares, sizes) == pytest.approx(best_distance(shares, counts))


def test_time_split_of_a_number_of_rows_cuts_them_in_order():
    train, validation, test = time_split(10)
    assert train.tolist() == [0, 1, 2, 3, 4, 5]
    assert validation.tolist() == [6, 7]
    assert test.tolist() == [8, 9]


def test_time_split_takes_dates_and_strings():
    days = ["2021-03-01", "2020-01-01", "2021-03-01", "2022-12-31"]
    expected = [[1], [0, 2], [3]]
    assert [rows.tolist() for rows in time_split(days)] == expected
    assert [rows.tolist() for rows in time_split(np.array(days, dtype="M8[D]"))] == expected


def test_a_time_as_long_as_the_border_is_wide_stays_in_one_part():
    # 0.6 and 0.8 of the rows both fall into time 1.
    times = np.repeat([0, 1, 2, 3], [50, 100, 30, 20])
    assert [len(rows) for rows in time_split(times)] == [150, 30, 20]


def scripts_rule(groups, shares):
    """The paper's script, in plain Python: groups in ascending order, two indices into them."""
    names = sorted(set(groups))
    counts = [sum(group == name for group in groups) for name in names]
    so_far = [sum(counts[: k + 1]) for k in range(len(counts))]
    n = len(groups)
    idx1 = next(k for k, rows in enumerate(so_far) if rows >= int(shares[0] * n))
    border = so_far[idx1] + int(shares[1] * n)
    idx2 = next((k for k, rows in enumerate(so_far) if rows >= border), len(names))
    return names[:idx1], names[idx1:idx2], names[idx2:]


@given(group_lists)
def test_ordered_group_split_is_the_rule_of_the_script(groups):
    expected = scripts_rule(groups, (0.7, 0.1))
    if not all(expected):
        with pytest.raises(ArgumentError, match="leave one empty. Use group_split"):
            ordered_group_split(groups)
        return
    parts = ordered_group_split(groups)
    assert_parts_of(parts, len(groups))
    for rows, names in zip(parts, expected, strict=True):
        assert {groups[row] for row in rows} == set(names)


def test_ordered_group_split_gives_the_paper_s_leagues():
    leagues = np.repeat(np.arange(1, 9), [167, 347, 553, 811, 806, 621, 35, 55])
    shuffled = np.random.default_rng(0).permutation(leagues)
    parts = ordered_group_split(shuffled)
    assert [len(rows) for rows in parts] == [1878, 806, 711]
    assert [sorted(set(shuffled[rows])) for rows in parts] == [[1, 2, 3, 4], [5], [6, 7, 8]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_split(2, seed=0), "`n` must be at least 3, got 2"),
        (lambda: random_split(9, seed=-1), "`seed` must be at least 0, got -1"),
        (lambda: random_split(9, shares=(0.5, 0.5), seed=0), "`shares` must be three numbers"),
        (lambda: random_split(9, shares=(0.5, 0.5, 0.5), seed=0), "`shares` must add up to 1"),
        (lambda: random_split(9, shares=(1.0, 0.0, 0.0), seed=0), "`shares` must be in \\(0, 1]"),
        (lambda: random_split(9, sizes=(5, 3), seed=0), "`sizes` must be three whole numbers"),
        (lambda: random_split(9, sizes=(5, 3, 2), seed=0), "the 9 rows, got 5 \\+ 3 \\+ 2 = 10"),
        (lambda: random_split(9, sizes=(9, 0, 0), seed=0), "`sizes` must be at least 1, got 0"),
        (lambda: group_split([1, 1, 2, 2], seed=0), "at least 3 different values.*got 2: \\[1, 2]"),
        (lambda: group_split([[1, 2, 3]], seed=0), "`groups` must be \\(n,\\), got shape \\(1, 3"),
        (lambda: group_split([1.0, np.nan, 2.0, 3.0], seed=0), "`groups` must not have missing"),
        (lambda: time_split(np.array(["2020", "NaT"], "M8[Y]")), "`times` must not have missing"),
        (lambda: time_split([1, 1, 1, 2]), "`times` must have at least 3 different values"),
        (lambda: time_split(2), "`times` must be at least 3"),
    ],
)
def test_an_error_says_what_must_be_and_what_came(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_groups_that_cannot_be_ordered_are_refused():
    with pytest.raises(ArgumentTypeError, match="`groups` must be all numbers, all dates or all"):
        group_split(np.array(["a", 1, None, "b"], dtype=object), seed=0)
