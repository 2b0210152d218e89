"""Calls of process table functions.

Source: apache/flink StreamPhysicalProcessTableFunction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .changelog import Change, ChangelogMode
from .logical import Relation, order_text
from .typed import Expr, Function


@dataclass(frozen=True)
class TableArgument:
    """A table of a call.

    Args:
        name: of the argument.
        partition: numbers of the columns of PARTITION BY.
        order: the keys by which rows are put into order, a time first; none: they come as they come.
        time: number of the column of `on_time`; None: there is none.
        is_set: the rows of a partition are worked together.
        passes_columns: all columns stand before those of the result, not those of PARTITION BY alone.
        takes_updates: rows may be updated and deleted.
        wants_before: updates include the row before.
    """

    name: str
    partition: tuple[int, ...] = ()
    order: tuple[tuple[int, bool, bool], ...] = ()
    time: int | None = None
    is_set: bool = False
    passes_columns: bool = False
    takes_updates: bool = False
    wants_before: bool = False

    def columns(self, width: int) -> tuple[int, ...]:
        """Return the numbers of its columns that stand before those of the result; `width` is the number of all."""
        return tuple(range(width)) if self.passes_columns else self.partition


@dataclass(frozen=True)
class ProcessTable(Relation):
    """The rows that a process table function gives for the rows of tables.

    The columns are those of the tables that are passed on, then those of the function, then the time of the row.

    Args:
        function: its kernel is a `ProcessKernel`.
        relations: the tables; without any the function is called once.
        tables: what the call says of each.
        scalars: values of the other arguments by name, over no columns.
        uid: identifies its state.
        mode: the kinds of its rows.
    """

    function: Function
    relations: tuple[Relation, ...]
    tables: tuple[TableArgument, ...]
    scalars: tuple[tuple[str, Expr], ...]
    uid: str
    mode: ChangelogMode

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return self.relations

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, relations=tuple(inputs))

    @property
    def is_set(self) -> bool:
        """Return whether the rows of a partition are worked together, with state."""
        return any(table.is_set for table in self.tables)

    @property
    def has_time(self) -> bool:
        """Return whether the last column is the time of the row."""
        return any(table.time is not None for table in self.tables)

    @property
    def exprs_of_rows(self) -> tuple[Expr, ...]:
        return tuple(expr for _, expr in self.scalars)

    @property
    def is_repeatable(self) -> bool:
        return all(below.is_repeatable for below in self.relations)  # by its uid there is one

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        table = self.tables[input_index]
        return table.partition if table.is_set else None

    def takes_changes(self) -> Change:
        return Change.ALL if self.tables and all(table.takes_updates for table in self.tables) else Change.INSERT

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        return self.mode.changes

    def requires_update_before(self, is_wanted: bool) -> bool:
        return any(table.wants_before for table in self.tables)

    @property
    def produces_update_before(self) -> bool:
        return self.mode.before

    @property
    def instead(self) -> str:
        if not self.takes_changes() & Change.UPDATE:
            return "declare the trait SUPPORT_UPDATES for each table argument of the function"
        return "let its get_changelog_mode return ChangelogMode.all(), and give the rows before updates"

    def explain_line(self) -> str:
        arguments = [self._described(table, number) for number, table in enumerate(self.tables)]
        arguments += [f"{name} => {expr}" for name, expr in self.scalars]
        times = [below.names[table.time] for below, table in zip(self.relations, self.tables, strict=True)
                 if table.time is not None]  # fmt: skip
        if times:
            arguments.append(f"on_time => DESCRIPTOR({', '.join(dict.fromkeys(times))})")
        parts = [f"invocation=[{self.function.name}({', '.join(arguments)})]", f"uid=[{self.uid}]"]
        return f"ProcessTableFunction({', '.join(parts)}, select=[{', '.join(self.names)}])"

    def _described(self, table: TableArgument, number: int) -> str:
        names = self.relations[number].names
        partition = ", ".join(names[column] for column in table.partition)
        text = f"{table.name} => TABLE #{number}"
        text += f" PARTITION BY ({partition})" if partition else ""
        return f"{text} ORDER BY ({order_text(names, table.order)})" if table.order else text


__all__ = ["ProcessTable", "TableArgument"]
