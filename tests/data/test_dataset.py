"""Invariants of every data set; values that are sparse, mapped or computed on access equal an array of them."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from budgetreg.common.errors import BudgetExceeded, ConfigError, DataError, UserError, nearest
from budgetreg.data.dataset import BLOCK_ROWS, Coins, Dataset, Dense, Sparse, means, row_blocks
from budgetreg.data.registry import load
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.protocol.configuration import DatasetConfig

X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
Y = np.array([1.0, -1.0, 1.0])


def config(kind: str, **options: Any) -> DatasetConfig:
    return DatasetConfig(name=kind, kind=kind, center="none", split="random", test_fraction=0.1, options=options)


def dataset(**changes: Any) -> Dataset:
    parts = {"name": "a", "X": X.copy(), "y": Y.copy(), "scale": 1.0, "n_train": None, "two_valued": True}
    return Dataset(**(parts | changes))


def test_a_dataset_is_read_only() -> None:
    data = dataset()
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        data.y[0] = 1


@pytest.mark.parametrize(
    "changes",
    [
        {"X": X[:2]},
        {"X": X[0]},
        {"X": X[:0], "y": Y[:0]},
        {"X": X.astype(int)},
        {"X": Dense(X)},
        {"X": np.asfortranarray(X)},
        {"y": Y.astype(int)},
        {"y": np.array([1.0, np.inf, -1.0])},
        {"y": np.array([1.0, 0.0, -1.0])},
        {"scale": 0.0},
        {"scale": np.inf},
        {"scale": np.array([1.0, 0.0])},
        {"scale": np.ones(3)},
        {"n_train": 0},
        {"n_train": 3},
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"X|y|scale|n_train|targets"):
        dataset(**changes)


def test_an_unknown_kind_is_refused_with_the_choices() -> None:
    with pytest.raises(ConfigError, match=r"digits, .*gaussian, sphere, power_law, file, mnist"):
        load(config("minst"), 0, 0)


def test_loading_again_returns_the_same_object() -> None:
    assert load(config("digits"), 0, 0) is load(config("digits"), 1, 7)


def test_errors_have_the_documented_exit_codes() -> None:
    assert (UserError.exit_code, ConfigError.exit_code, DataError.exit_code) == (2, 2, 3)
    assert not issubclass(BudgetExceeded, UserError)


def test_the_hint_is_the_nearest_choice_or_empty() -> None:
    assert nearest("aelrr", ["aer", "aelr", "ridge"]) == " (did you mean 'aelr'?)"
    assert nearest("zebra", ["aer", "aelr"]) == ""


MASK = 2**64 - 1


def splitmix64(seed, count):
    """Return the first numbers of the generator started at `seed`, by the paper's listing."""
    numbers = []
    for _ in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        numbers.append(z ^ (z >> 31))
    return numbers


def sparse(array, first=0):
    rows = scipy.sparse.csr_array(array)
    return Sparse(rows.indptr, (rows.indices + first).astype(np.int32), rows.data, array.shape[1], first)


@given(
    array=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 40)),
        elements=st.sampled_from([0.0, 0.0, 0.0, -1.5, 2.0]),
    ).filter(np.any),
    first=st.sampled_from([0, 1]),
    seed=st.integers(0, 99),
)
def test_sparse_rows_equal_the_array(array, first, seed):
    n, d = array.shape
    values, rng = sparse(array, first), np.random.default_rng(seed)
    rows, attributes = np.arange(n)[:, None], np.arange(d)
    np.testing.assert_array_equal(values.entries(rows, attributes), array)
    some = rng.integers(n, size=(3, 4, 1)), rng.integers(d, size=(3, 4, 5))
    np.testing.assert_array_equal(values.entries(*some), Dense(array).entries(*some))
    index = rng.integers(n, size=(2, 3))
    np.testing.assert_array_equal(values.rows(index), array[index])
    assert values.shape == array.shape


def test_coins_are_the_numbers_of_splitmix64_below_the_means():
    # The reference implementation's first numbers from the seed 1234567.
    assert splitmix64(1234567, 2) == [6457827717110365317, 3203168211198807973]
    means = np.array([1.0, 0.5, 1e-3, 0.2, 0.0])
    key, n = MASK - 5, 300
    expected = np.array([z >> 11 for z in splitmix64(key, n * 5)]).reshape(n, 5) * 2.0**-53 < means
    coins = Coins(key, means, np.arange(n))
    np.testing.assert_array_equal(coins.rows(np.arange(n)), expected)
    np.testing.assert_array_equal(coins.entries(np.arange(n)[:, None], np.arange(5)), expected)
    later = Coins(key, means, np.arange(100, n))
    np.testing.assert_array_equal(later.rows(np.array([[0, 3]])), expected[[[100, 103]]])


def test_coins_of_large_row_numbers_and_wide_rows_are_consistent():
    means = np.full(70_000, 0.25)
    coins = Coins(3, means, np.array([0, 2**40]))
    rows = coins.rows(np.array([1, 0]))
    np.testing.assert_array_equal(coins.entries(np.array([1, 0])[:, None], np.arange(70_000)), rows)
    assert (np.abs(rows.mean(axis=1) - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 70_000)).all()
    assert abs(np.corrcoef(rows)[0, 1]) < 5 / np.sqrt(70_000)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_arrays_may_be_mapped(tmp_path, dtype):
    array = np.arange(12, dtype=dtype).reshape(3, 4)
    np.save(tmp_path / "X.npy", array)
    values = Dense(np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert values.rows(np.array([2, 0])).tolist() == array[[2, 0]].tolist()
    assert values.entries(np.array([1]), np.array([3, 0])).tolist() == [7, 4]


@pytest.mark.parametrize("shift", [None, np.arange(6.0)])
@pytest.mark.parametrize("scale", [0.5, np.arange(1, 7) / 4])
def test_an_accessor_reveals_the_same_for_any_storage(scale, shift):
    coins = Coins(7, np.full(6, 0.4), np.arange(5))
    array = coins.rows(np.arange(5))
    orders, attributes = np.array([[3, 0], [1, 4]]), np.array([[[5, 0]], [[2, 2]]])
    expected = array * scale - (0 if shift is None else shift)
    for X in (array, array.astype(np.float32), coins, sparse(array.astype(float), first=1)):
        accessor = Accessor(Table(X, np.zeros(5), scale, shift), orders, 1, 8)
        accessor.open(0, 1)
        revealed = accessor.reveal_block(attributes)
        np.testing.assert_array_equal(revealed[:, 0], expected[orders[:, :1], attributes[:, 0]])
        np.testing.assert_array_equal(accessor.rows(1, 2)[0], expected[orders[:, 1:]])


def test_blocks_have_every_row_once_and_bounded_sizes():
    index = np.arange(10_000) * 2
    for d, sizes in ((784, [BLOCK_ROWS, BLOCK_ROWS, 1808]), (10_000, [838] * 11 + [782]), (2**24, [1] * 10_000)):
        blocks = list(row_blocks(index, d))
        assert [rows.size for rows in blocks] == sizes
        np.testing.assert_array_equal(np.concatenate(blocks), index)


def test_means_are_over_the_given_rows():
    array = np.random.default_rng(0).integers(0, 9, (9000, 3)).astype(np.uint8)
    index = np.flatnonzero(array[:, 0] > 2)
    np.testing.assert_array_equal(means(Dense(array), index), array[index].mean(axis=0))
