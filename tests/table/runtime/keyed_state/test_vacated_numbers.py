"""The numbers of removed rows that a checkpoint writes down are bounded by the rows of the table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from rayflink.table.runtime.keyed_state import vacated_numbers
from rayflink.table.runtime.keyed_state.keyed_table import KeyedTable
from rayflink.table.runtime.keyed_state.vacated_numbers import VacatedNumbers


def test_the_first_row_of_a_number_counts() -> None:
    numbers = VacatedNumbers()
    numbers.add(np.array([5, 2]), np.array([1, 7], dtype=np.uint16), 6)
    numbers.add(np.array([2, 3]), np.array([9, 4], dtype=np.uint16), 6)
    rows, groups = numbers.take()
    assert (rows.tolist(), groups.tolist()) == ([2, 3, 5], [7, 4, 1])
    assert len(numbers) == 0 and len(numbers.take()[0]) == 0


def test_rows_that_come_and_go_without_a_checkpoint_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vacated_numbers, "LEAST_NUMBERS", 10)
    table = KeyedTable([pa.int64()], [pa.int64()])
    for first in range(0, 2_000, 20):
        keys = table.comparable([pa.array(range(first, first + 20))])
        table.remove(table.add(keys, [pa.array([0] * 20)], now_ms=0))
    assert len(table) == 0 and len(table._vacated) <= 40
    assert table.take_vacated()[0].tolist() == list(range(20))
