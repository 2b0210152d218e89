"""Base classes of process table functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from rayflink.user_types import UserValue

from ...plan.changelog import ChangelogMode
from ..function_classes import UserDefinedFunction
from .contexts import ProcessTableFunctionContext
from .declarations import ProcessTableFunctionArgument, ProcessTableFunctionState

ArgumentDeclarations = Mapping[str, UserValue] | Sequence[ProcessTableFunctionArgument]
StateDeclarations = Mapping[str, ProcessTableFunctionState] | Sequence[ProcessTableFunctionState]


class ProcessTableFunction(UserDefinedFunction):
    """A function of tables: `eval` is called for each row, `on_timer` for each timer that it set; both yield rows.

    What it takes is declared by `udptf`, or by attributes of the class: then the class itself, or an instance, can be
    registered. State objects may be changed in place; they belong to the partition of the row.

    >>> from rayflink.table import EnvironmentSettings, TableEnvironment
    >>> from rayflink.table.udf import ProcessTableFunctionArgumentTrait as Trait, table_arg, value_state
    >>> class Greeting(ProcessTableFunction):
    ...     arguments = {"input": table_arg(traits={Trait.SET_SEMANTIC_TABLE})}
    ...     states = {"memory": value_state("ROW<times BIGINT>")}
    ...     result_type = "STRING"
    ...     def eval(self, ctx, memory, input):
    ...         memory["times"] = (memory.times or 0) + 1
    ...         yield f"Hello {input.name}, your {memory.times} time?"
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> _ = t_env.get_config().set("execution.target", "local")
    >>> names = t_env.from_elements([("Bob",), ("Alice",), ("Bob",)], ["name"])
    >>> t_env.create_temporary_view("names", names)
    >>> t_env.create_temporary_function("greeting", Greeting)
    >>> list(t_env.execute_sql("SELECT * FROM greeting(TABLE names PARTITION BY name)").collect())[2]
    <Row('Bob', 'Hello Bob, your 2 time?')>
    """

    arguments: ClassVar[ArgumentDeclarations | None] = None
    """The arguments behind the states, in the order of `eval`: a mapping from names to `table_arg` or a type."""
    states: ClassVar[StateDeclarations | None] = None
    """The states behind the context, in the order of `eval`: a mapping from names to `value_state` and the like."""
    result_type: ClassVar[UserValue] = None
    """The type of a row of the result, a ROW with names; another type stands for one column."""

    @abstractmethod
    def eval(self, ctx: ProcessTableFunctionContext, *args: UserValue) -> UserValue:
        """Work a row: return or yield the rows of the result.

        Args:
            ctx: time, timers and the declarations of the call.
            args: the states, then the arguments; of several tables all but that of the row are None.
        """

    def on_timer(self, ctx: ProcessTableFunctionContext, *states: UserValue) -> UserValue:
        """Work a timer: return or yield the rows of the result. Without this method there are no timers."""
        return ()


class ChangelogFunction(ProcessTableFunction):
    """A process table function whose rows may update and delete others: each is a Row with a kind.

    >>> from rayflink.common import Row, RowKind
    >>> from rayflink.table import ChangelogMode, EnvironmentSettings, TableEnvironment
    >>> from rayflink.table.udf import ProcessTableFunctionArgumentTrait as Trait, table_arg, value_state
    >>> class Latest(ChangelogFunction):
    ...     arguments = {"input": table_arg(traits={Trait.SET_SEMANTIC_TABLE})}
    ...     states = {"memory": value_state("ROW<times BIGINT>")}
    ...     result_type = "ROW<times BIGINT>"
    ...     def get_changelog_mode(self, context):
    ...         return ChangelogMode.upsert()
    ...     def eval(self, ctx, memory, input):
    ...         memory["times"] = (memory.times or 0) + 1
    ...         yield Row.of_kind(RowKind.INSERT if memory.times == 1 else RowKind.UPDATE_AFTER, memory.times)
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> _ = t_env.get_config().set("execution.target", "local")
    >>> names = t_env.from_elements([("Bob",), ("Bob",)], ["name"])
    >>> [str(row.get_row_kind()) for row in names.partition_by(names.name).process(Latest).execute().collect()]
    ['+I', '+U']
    """

    @abstractmethod
    def get_changelog_mode(self, context: ChangelogContext) -> ChangelogMode:
        """Return the kinds of its rows; with updates that have no row before, PARTITION BY finds the rows."""


class ChangelogContext:
    """The changes of the tables of a call, of which a `ChangelogFunction` may make its own depend.

    Args:
        modes: of the table arguments, by their names.
    """

    def __init__(self, modes: Mapping[str, ChangelogMode]) -> None:
        self._modes = dict(modes)

    def get_table_changelog_mode(self, name: str) -> ChangelogMode:
        """Return the kinds of changes of a table argument.

        Raises:
            KeyError: there is none of the name.
        """
        return self._modes[name]


class PlainFunction(ProcessTableFunction):
    """A process table function made of callables.

    Args:
        body: called for each row.
        timer_body: called for each timer; None: there are none.
    """

    def __init__(self, body: Callable[..., UserValue], timer_body: Callable[..., UserValue] | None = None) -> None:
        self.body, self.timer_body = body, timer_body

    def eval(self, ctx: ProcessTableFunctionContext, *args: UserValue) -> UserValue:
        return self.body(ctx, *args)

    def on_timer(self, ctx: ProcessTableFunctionContext, *states: UserValue) -> UserValue:
        return () if self.timer_body is None else self.timer_body(ctx, *states)


def eval_of(function: ProcessTableFunction) -> Callable[..., UserValue]:
    """Return the callable that works rows."""
    return function.body if isinstance(function, PlainFunction) else function.eval


def on_timer_of(function: ProcessTableFunction) -> Callable[..., UserValue] | None:
    """Return the callable that works timers; None: there is none."""
    if isinstance(function, PlainFunction):
        return function.timer_body
    return None if type(function).on_timer is ProcessTableFunction.on_timer else function.on_timer


__all__ = ["ChangelogContext", "ChangelogFunction", "PlainFunction", "ProcessTableFunction", "eval_of", "on_timer_of"]
