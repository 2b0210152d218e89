"""Runs of columns of one partition are given out as one batch."""

from __future__ import annotations

import numpy as np
import pyarrow
import pytest

from rayflink.common.records.batches import ArrowBatch, RowBatch
from rayflink.connectors.kafka.kafka_decoding import DecodedRun, joined_columns


def columns(first: int, last: int, name: str = "n") -> DecodedRun:
    """Return the records of offsets `first` to `last`."""
    numbers = range(first, last + 1)
    batch = pyarrow.record_batch({name: pyarrow.array(numbers, pyarrow.int64())})
    return DecodedRun(ArrowBatch(batch, np.array([number * 10 for number in numbers])), last + 1)


def test_columns_that_follow_each_other_become_one_batch():
    run, count = joined_columns(columns(0, 2), iter([columns(3, 3), columns(4, 6)]), 7)
    assert (run, count) == (columns(0, 6), 2)


@pytest.mark.parametrize(
    ("later", "most"),
    [
        (columns(3, 4), 4),
        (columns(3, 4, "other"), 100),
        (DecodedRun(RowBatch([3], [30]), 4), 100),
        (DecodedRun(None, 4), 100),
    ],
    ids=["too many rows", "other columns", "rows", "no records"],
)
def test_what_does_not_fit_is_given_out_after_them(later, most):
    run, count = joined_columns(columns(0, 1), iter([columns(2, 2), later, columns(5, 5)]), most)
    assert (run, count) == (columns(0, 2), 1)
    assert joined_columns(later, iter([columns(9, 9, "more")]), most) == (later, 0)


def test_columns_of_many_bytes_stay_apart():
    long = pyarrow.record_batch({"text": ["x" * (9 << 20)]})
    runs = [DecodedRun(ArrowBatch(long, np.array([0])), offset + 1) for offset in range(2)]
    assert joined_columns(runs[0], iter(runs[1:]), 100) == (runs[0], 0)
