"""Functions of the planner's own plans, which no query names: a row repeated, and a value of one row at most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.plan.typed import Arguments, Expr, Function, RowError
from rayflink.table.types import DataType, DataTypes

from .casts.nested_casts import lists_of
from .declaring import Columns, by_columns


@by_columns
def _places(arguments: Arguments, columns: Columns) -> pyarrow.Array:
    counts = columns[0].fill_null(0).to_numpy(zero_copy_only=False)
    none = numpy.zeros(len(counts), dtype=numpy.bool_)
    return lists_of(pyarrow.array(numpy.zeros(int(counts.sum()), dtype=numpy.int8)), counts, none)


@by_columns
def _single(arguments: Arguments, columns: Columns) -> pyarrow.Array:
    value, rows = columns
    most = pc.max(rows).as_py()
    if most is not None and most > 1:
        remedy = "aggregate it, as in (SELECT MAX(x) FROM t), or write LIMIT 1"
        raise RowError(f"a query that is used as a value returns {most} rows", remedy)
    return value


def _like_value(args: Sequence[Expr]) -> DataType:
    return args[0].type.nullable()


REPLICATE = Function(
    "REPLICATE", lambda args: DataTypes.ARRAY(DataTypes.TINYINT(False)).as_nullable(False), _places,
    usage="REPLICATE(n)", about="An array of n elements.",
)  # fmt: skip
SINGLE_VALUE = Function(
    "SINGLE_VALUE", _like_value, _single, usage="SINGLE_VALUE(value, rows)",
    about="The value of a query with that many rows; more than one are an error.", raises=True,
)  # fmt: skip

__all__ = ["REPLICATE", "SINGLE_VALUE"]
