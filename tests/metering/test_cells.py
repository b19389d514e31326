"""Sets of cells, and the log of what an accessor reveals to whom."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetreg.data.dataset import BLOCK_ROWS
from budgetreg.metering import ledger as module
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.ledger import Cells, RevealLog
from budgetreg.metering.table import Table

N, D = 7, 5


@pytest.fixture(params=["a byte each", "listed"])
def kept(request, monkeypatch):
    """Test both ways in which cells are kept; the lists of the second one are joined often."""
    if request.param == "listed":
        monkeypatch.setattr(module, "DENSE", 0)
        monkeypatch.setattr(module, "_PENDING", 3)


BATCHES = st.lists(
    st.one_of(
        st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, D - 1)), max_size=9),
        st.sets(st.integers(0, N - 1), max_size=2),
    ),
    max_size=8,
)


@settings(max_examples=60)
@given(batches=BATCHES, rows=st.sets(st.integers(0, N - 1)))
@pytest.mark.parametrize("dense", [module.DENSE, 0])
def test_a_set_of_cells_is_a_set_of_pairs(dense, batches, rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DENSE", dense)
        patch.setattr(module, "_PENDING", 3)
        cells, pairs = Cells(N, D), set()
        for batch in batches:
            if isinstance(batch, set):
                cells.add_rows(np.array(sorted(batch), dtype=int))
                pairs |= {(row, attribute) for row in batch for attribute in range(D)}
            else:
                added = [row * D + attribute for row, attribute in batch]
                cells.add(np.array([*added, cells.nowhere]))
                pairs |= set(batch)
        in_rows = [attribute for row, attribute in pairs if row in rows]
        by_attribute = cells.by_attribute(np.array(sorted(rows), dtype=int))
        assert by_attribute.tolist() == [in_rows.count(attribute) for attribute in range(D)]
        everywhere = [(row, attribute) for row in range(N) for attribute in range(D)]
        held = cells.holds(np.arange(N * D))
        assert held.tolist() == [pair in pairs for pair in everywhere]


def test_many_rows_are_counted_block_by_block(kept):
    n = 2 * BLOCK_ROWS + 3
    cells = Cells(n, 2)
    cells.add(np.arange(0, 2 * n, 3))
    assert cells.by_attribute(np.arange(n)).sum() == -(-2 * n // 3)


def opened(n_separate, lengths=None):
    """Return two streams over rows 0, 1, 2 and 3, 4, 5 with two settings; their cells begin in row 1."""
    cells = Cells(N, D)
    record = RevealLog(cells, np.array([1, 1]), n_separate)
    table = Table(np.arange(30.0).reshape(6, 5), np.zeros(6))
    accessor = Accessor(table, np.arange(6).reshape(2, 3), 2, None, [3], lengths=lengths, log=record)
    return cells, record, accessor


def pairs(cells):
    return sorted(divmod(int(cell), D) for cell in np.flatnonzero(cells.holds(np.arange(N * D))))


def single(seen):
    rows, cells = seen
    return rows.tolist(), [divmod(int(cell), D) for cell in cells]


def test_every_reveal_is_recorded(kept):
    cells, record, accessor = opened(n_separate=1)
    accessor.open(0, 2)
    accessor.reveal_block(np.array([[[0, 0], [1, 2]], [[4, 4], [0, 1]]]))
    accessor.reveal(np.array([1, 0]), np.array([[[3, 3], [1, 2]]]), np.array([[True, True], [False, True]]))
    both = np.array([[[4, 3], [0, 0]], [[0, 3], [4, 0]]])
    accessor.reveal_some(0, both, np.array([[[True, False], [False, False]], [[False, True], [True, False]]]))
    accessor.pay(np.ones((2, 2, 2), dtype=int))
    assert pairs(cells) == [(1, 0), (1, 4), (2, 1), (2, 2), (2, 3)]
    assert single(record.seen(0, 0)) == ([], [(4, 3), (4, 4), (5, 0), (5, 1)])
    assert single(record.seen(0, 1)) == ([], [(4, 2), (4, 4), (5, 0), (5, 1)])
    accessor.rows(2, 3)
    assert pairs(cells) == [(1, 0), (1, 4), (2, 1), (2, 2), (2, 3), *((3, i) for i in range(D))]
    assert single(record.seen(0, 0)) == ([6], [(4, 3), (4, 4), (5, 0), (5, 1)])


def test_full_rows_are_recorded_once(kept):
    cells, record, accessor = opened(n_separate=1)
    list(accessor.distinct_rows(0, 2))
    assert cells.by_attribute(np.arange(N)).tolist() == [2] * D
    assert single(record.seen(0, 1)) == ([4, 5], [])


def test_nothing_is_recorded_after_the_end_of_a_stream(kept):
    cells, record, accessor = opened(n_separate=1, lengths=np.array([1, 3]))
    accessor.open(0, 2)
    accessor.reveal_block(np.zeros((2, 2, 1), dtype=int))
    accessor.reveal(np.array([1, 1]), np.ones((1, 2, 2), dtype=int), np.ones((2, 2), dtype=bool))
    assert pairs(cells) == [(1, 0)]
    assert single(record.seen(0, 0)) == ([], [(4, 0), (5, 0), (5, 1)])


def test_refused_reveals_are_not_recorded(kept):
    cells = Cells(N, D)
    table = Table(np.zeros((6, D)), np.zeros(6))
    accessor = Accessor(table, np.arange(6)[None], 1, 1, log=RevealLog(cells, np.array([0]), 0))
    accessor.open(0, 2)
    with pytest.raises(Exception, match="budget"):
        accessor.reveal_block(np.zeros((1, 2, 2), dtype=int))
    assert pairs(cells) == []
