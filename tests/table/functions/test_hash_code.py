"""HASH_CODE: the same for equal values of each type, and in every run."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal

import pytest

from rayflink.table.types import DataType, DataTypes
from tests.table.functions.calling import DOUBLE, STRING, column, result

VALUES = [
    (STRING, ["a", "b", "a" * 70]), (DataTypes.BYTES(), [b"a", b"b"]), (DataTypes.BOOLEAN(), [True, False]),
    (DataTypes.TINYINT(), [-1, 2]), (DataTypes.BIGINT(), [2**63 - 1, -(2**63)]), (DOUBLE, [0.5, 3.0]),
    (DataTypes.FLOAT(), [0.5, 3.0]), (DataTypes.DECIMAL(38, 2), [Decimal("1.10"), Decimal(-(10**35))]),
    (DataTypes.DATE(), [date(1969, 1, 1), date(2024, 1, 1)]), (DataTypes.TIME(0), [time(1), time(2)]),
    (DataTypes.TIMESTAMP(9), [datetime(1969, 1, 1), datetime(2024, 1, 1)]),
    (DataTypes.INTERVAL_YEAR_MONTH(), [1, 2]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_equal_values_have_one_and_others_another(kind: DataType, values: list[object]) -> None:
    found = result("HASH_CODE", column(kind, *values, None, *values))
    first = found[: len(values)]
    assert len({*first, found[len(values)]}) == len(values) + 1
    assert found[len(values) + 1 :] == first
    assert all(0 <= one < 2**31 for one in found)


def test_it_is_the_same_in_every_run():
    assert result("HASH_CODE", column(STRING, "abc", None)) == [1741820432, 1900556777]
    assert result("HASH_CODE", column(DataTypes.DECIMAL(5, 2), Decimal("1.10"), None)) == [382390834, 1710453178]
    assert len(set(result("HASH_CODE", column(DOUBLE, 0.0, -0.0)))) == 1
