"""Which type an aggregate gives."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import SqlError
from ..typed import Place
from ..types import DataType, DataTypes, Root

_NUMBERS = ("SUM", "SUM0", "AVG", "STDDEV_POP", "STDDEV_SAMP", "STDDEV", "VAR_POP", "VAR_SAMP", "VARIANCE")


def result_type(name: str, kinds: Sequence[DataType], place: Place | None) -> DataType:
    """Of an aggregate of columns of such types.

    Raises:
        SqlError: it does not take them.

    Source: apache/flink LogicalTypeMerging.findSumAggType, findAvgAggType.
    """
    if name == "COUNT":
        return DataTypes.BIGINT(False)
    if len(kinds) != 1:
        raise SqlError(f"{name} of {len(kinds)} columns", "give it one", "", place)
    [kind] = kinds
    if name in _NUMBERS and not kind.is_numeric:
        raise SqlError(f"{name} does not take {kind}", "give it a number, or cast it to one", "", place)
    if name in ("MIN", "MAX") and kind.root in (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW):
        raise SqlError(f"{name} does not take {kind}", "its values have no order; take a part of it", "", place)
    if name in ("SUM", "SUM0"):
        summed = DataTypes.DECIMAL(38, kind.scale) if kind.root is Root.DECIMAL else kind
        return summed.as_nullable(name == "SUM")
    if name == "AVG":
        return DataTypes.DECIMAL(38, max(6, kind.scale)) if kind.root is Root.DECIMAL else kind.nullable()
    if name in _NUMBERS:
        return _deviation(kind)
    if name == "LISTAGG":
        return DataTypes.STRING()
    if name == "COLLECT":
        return DataTypes.MULTISET(kind.not_null(), False)
    if name == "ARRAY_AGG":
        return DataTypes.ARRAY(kind)
    return kind.nullable()


def _deviation(kind: DataType) -> DataType:
    return DataTypes.DECIMAL(38, max(6, kind.scale)) if kind.root is Root.DECIMAL else kind.nullable()
