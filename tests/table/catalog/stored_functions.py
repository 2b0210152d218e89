"""Functions that catalogs of the tests name."""

from __future__ import annotations

from rayflink.table import DataTypes, ScalarFunction
from rayflink.table.udf import udf


@udf(result_type=DataTypes.BIGINT())
def twice(n):
    return 2 * n


class Thrice(ScalarFunction):
    def eval(self, n: int) -> int:
        return 3 * n


def untyped(n):
    return n
