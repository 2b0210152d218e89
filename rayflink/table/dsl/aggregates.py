"""Aggregates of expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from rayflink.common.errors import InvalidTypesError

from ..parsing.program_nodes import Applied, OverWindow
from .expression_text import Operand, Property, T, Written, to_expression, tree_of

if TYPE_CHECKING:
    from ..expression import Expression


class Aggregates(Written[T]):
    """Aggregate functions as methods of an expression.

    >>> from rayflink.table.expressions import col
    >>> col("price").sum.distinct
    SUM(Distinct(price))
    """

    sum = Property("SUM", "The sum; NULL where all values are.")
    sum0 = Property("SUM0", "The sum; 0 where all values are NULL.")
    min = Property("MIN", "The smallest value.")
    max = Property("MAX", "The largest value.")
    count = Property("COUNT", "The number of values that are not NULL.")
    avg = Property("AVG", "The mean.")
    first_value = Property("FIRST_VALUE", "The first value.")
    last_value = Property("LAST_VALUE", "The last value.")
    stddev_pop = Property("STDDEV_POP", "The standard deviation of a population.")
    stddev_samp = Property("STDDEV_SAMP", "The standard deviation of a sample.")
    var_pop = Property("VAR_POP", "The variance of a population.")
    var_samp = Property("VAR_SAMP", "The variance of a sample.")
    collect = Property("COLLECT", "All values, as a multiset.")
    array_agg = Property("ARRAY_AGG", "All values, as an array.")

    def list_agg(self, separator: Operand = None) -> Expression[str]:
        """Return all strings as one, with a separator between them; "," if none is given."""
        return self._call("LISTAGG", separator)

    def percentile(self, percentage: Operand, frequency: Operand = None) -> Expression[Any]:
        """Compute the value at a percentage of the ordered values, interpolated between two of them.

        Args:
            percentage: within [0, 1]; an array or list of several gives an array.
            frequency: how often a value counts; once if not given, not at all where it is NULL or not positive.
        """
        return self._call("PERCENTILE", percentage, frequency)

    @property
    def distinct(self) -> Expression[Any]:
        """Return the aggregate of each value once.

        Raises:
            InvalidTypesError: this is no aggregate.
        """
        tree = self._tree
        if not isinstance(tree, (exp.Anonymous, Applied)) or not tree.expressions:
            raise InvalidTypesError(
                f"{self} is not an aggregate", "write distinct after one, as in col('a').count.distinct"
            )
        first, *others = tree.expressions
        return to_expression(type(tree)(this=tree.this, expressions=[exp.Distinct(expressions=[first]), *others]))

    def over(self, alias: Operand) -> Expression[Any]:
        """Return the aggregate over the rows of an over window."""
        return to_expression(OverWindow(this=self._tree, window=tree_of(alias)))
