"""Calls of process table functions from programs: by a Table, by its partitions, and by name of all arguments."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from ..parsing.dialect import NamedArgument, TableArgument
from ..parsing.program_nodes import Applied, BoundTable
from ..parsing.statements import Tree
from ..plan.logical import Relation
from ..udf import UserProcess, as_user_function
from ..user_functions.process.function_classes import ProcessTableFunction
from .expression_text import Operand, field_tree, to_expression, tree_of

if TYPE_CHECKING:
    from ..expression import Expression
    from ..table import Table


def call_of_function(function: Operand, arguments: Sequence[Operand]) -> Tree:
    """Return a query that gives the rows of a process table function.

    Args:
        function: its name, what `udptf` made, or a ProcessTableFunction or its class.
        arguments: expressions, tables as trees, and values; None stands for DEFAULT.

    Raises:
        TypeError: it is no function.
    """
    trees = [argument if isinstance(argument, exp.Expression) else exp.column("DEFAULT") if argument is None
             else tree_of(argument) for argument in arguments]  # fmt: skip
    call: Tree
    if isinstance(function, str):
        call = exp.Anonymous(this=function, expressions=trees)
    else:
        call = Applied(this=_declared(function).registered(_declared(function).name), expressions=trees)
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Table(this=call)))


def _declared(function: Operand) -> UserProcess:
    is_class = isinstance(function, type) and issubclass(function, ProcessTableFunction)
    declared = as_user_function(function) if is_class or isinstance(function, ProcessTableFunction) else function
    if not isinstance(declared, UserProcess):
        wanted = "wanted is the registered name of a process table function, what udptf made, or its class"
        raise TypeError(f"{function!r} is no process table function; {wanted}")
    return declared


class PartitionedTable:
    """The partitions of a table, which a process table function works; made by `Table.partition_by`.

    >>> from rayflink.table import EnvironmentSettings, TableEnvironment
    >>> from rayflink.table.udf import ProcessTableFunctionArgumentTrait as Trait, map_view, table_arg, udptf
    >>> @udptf(arguments={"word": table_arg(traits={Trait.SET_SEMANTIC_TABLE})},
    ...        states={"seen": map_view("STRING", "BIGINT")}, result_type="ROW<places INT>")
    ... def places(ctx, seen, word):
    ...     seen[word.place] = 1
    ...     yield len(list(seen))
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> _ = t_env.get_config().set("execution.target", "local")
    >>> words = t_env.from_elements([("to", "a"), ("be", "a"), ("to", "b")], ["word", "place"])
    >>> list(words.partition_by(words.word).process(places).execute().collect())
    [<Row('to', 1)>, <Row('be', 1)>, <Row('to', 2)>]

    Args:
        plan: of the table.
        query: returns the table of a query.
        partition_by: columns.
        order_by: columns.
    """

    def __init__(
        self, plan: Relation, query: Callable[[Tree], Table], partition_by: Sequence[Operand],
        order_by: Sequence[Operand] = (),
    ) -> None:  # fmt: skip
        self._plan, self._query, self._partition_by, self._order_by = plan, query, partition_by, order_by

    def order_by(self, *fields: Expression[object]) -> PartitionedTable:
        """Put the rows of each partition into order, a time with a watermark first; late rows are dropped."""
        return PartitionedTable(self._plan, self._query, self._partition_by, fields)

    def as_argument(self, name: str) -> Expression[object]:
        """Return the partitions as an argument of that name."""
        return to_expression(NamedArgument(this=name, expression=self._tree()))

    def process(
        self, function: str | UserProcess | ProcessTableFunction | type[ProcessTableFunction], *arguments: Operand
    ) -> Table:
        """Return the rows that a process table function gives for the partitions.

        Args:
            function: its registered name, what `udptf` made, or a ProcessTableFunction or its class.
            arguments: the further ones, in their order or named by `as_argument`; None stands for DEFAULT.

        Raises:
            SqlError: the arguments are not those that it takes.
            TypeError: it is no function.
        """
        return self._query(call_of_function(function, [self._tree(), *arguments]))

    def _tree(self) -> Tree:
        argument = TableArgument(this=BoundTable(this=self._plan))
        if self._partition_by:
            argument.set("partition_by", [field_tree(field) for field in self._partition_by])
        if self._order_by:
            argument.set("order_by", [field_tree(field) for field in self._order_by])
        return argument


class ProcessCalls:
    """The methods of a Table that call process table functions."""

    _plan: Relation

    @abstractmethod
    def _made(self, tree: Tree) -> Table:
        """Return the table that a query is."""

    def partition_by(self, *fields: Expression[object]) -> PartitionedTable:
        """Return the partitions of equal columns, each of which a process table function works with its state."""
        return PartitionedTable(self._plan, self._made, fields)

    def process(
        self, function: str | UserProcess | ProcessTableFunction | type[ProcessTableFunction], *arguments: Operand
    ) -> Table:
        """Return the rows that a process table function gives for the rows of the table.

        >>> from rayflink.table import EnvironmentSettings, TableEnvironment
        >>> from rayflink.table.expressions import lit
        >>> from rayflink.table.udf import table_arg, udptf
        >>> @udptf(arguments={"row": table_arg(), "least": "INT"}, result_type="ROW<n BIGINT>")
        ... def at_least(ctx, row, least):
        ...     if row.n >= least:
        ...         yield row.n
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> _ = t_env.get_config().set("execution.target", "local")
        >>> numbers = t_env.from_elements([(1,), (5,)], ["n"])
        >>> list(numbers.process(at_least, lit(3).as_argument("least")).execute().collect())
        [<Row(5)>]

        Args:
            function: its registered name, what `udptf` made, or a ProcessTableFunction or its class.
            arguments: the further ones, in their order or named by `as_argument`; None stands for DEFAULT.

        Raises:
            SqlError: the arguments are not those that it takes.
            TypeError: it is no function.
        """
        return PartitionedTable(self._plan, self._made, ()).process(function, *arguments)

    def as_argument(self, name: str) -> Expression[object]:
        """Return the table as an argument of `TableEnvironment.from_call`, by its name."""
        return PartitionedTable(self._plan, self._made, ()).as_argument(name)


__all__ = ["PartitionedTable", "ProcessCalls", "call_of_function"]
