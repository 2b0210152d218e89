"""The checked declaration of a process table function, as plans and operators use it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rayflink.common.errors import InvalidTypesError
from rayflink.user_types import UserValue

from ...types import DataType, DataTypes, Root
from ..user_kernels import UserKernel
from .declarations import ProcessTableFunctionArgument, ProcessTableFunctionState, Trait
from .function_classes import ProcessTableFunction, eval_of, on_timer_of

SYSTEM_ARGUMENTS = ("on_time", "uid")
"""Further arguments of each call."""
REQUIRED = object()
"""In place of the default of a scalar argument that has none."""
Typed = Callable[[UserValue], DataType]
"""Returns a type, also one that a string names."""


@dataclass(frozen=True, eq=False)
class ProcessDeclaration:
    """The arguments, states and result of a process table function.

    Args:
        arguments: of `eval`, with their types.
        defaults: of the arguments; REQUIRED where there is none.
        states: of `eval` and `on_timer`.
        result: the ROW of a row of the result.
        has_timers: whether it has `on_timer`.
    """

    function: ProcessTableFunction
    arguments: tuple[ProcessTableFunctionArgument, ...]
    defaults: tuple[UserValue, ...]
    states: tuple[ProcessTableFunctionState, ...]
    result: DataType
    has_timers: bool

    @property
    def tables(self) -> tuple[ProcessTableFunctionArgument, ...]:
        """Return the table arguments."""
        return tuple(argument for argument in self.arguments if argument.is_table)


def declaration_of(
    function: ProcessTableFunction, arguments: UserValue, states: UserValue, result_type: UserValue, typed: Typed
) -> ProcessDeclaration:
    """Return the declaration of a function.

    Args:
        arguments, states, result_type: as of `udptf`; None: those of its class.

    Raises:
        InvalidTypesError: the type of its result is not known, or a type is none.
        TypeError, ValueError: parts of the declaration do not go together.
    """
    declared = _named_arguments(function.arguments if arguments is None else arguments, typed)
    entries = _named_states(function.states if states is None else states, typed)
    result = _result_type(function, function.result_type if result_type is None else result_type, typed)
    defaults = _ensure_signature(function, declared, entries)
    has_timers = on_timer_of(function) is not None
    _ensure_traits(declared, entries, has_timers)
    return ProcessDeclaration(function, declared, defaults, entries, result, has_timers)


def _named_arguments(declared: UserValue, typed: Typed) -> tuple[ProcessTableFunctionArgument, ...]:
    """Return arguments with names and types, from a sequence or a mapping of them."""
    pairs: Iterable[tuple[str, UserValue]]
    if isinstance(declared, Mapping):
        pairs = declared.items()
    else:
        pairs = ((getattr(argument, "name", ""), argument) for argument in declared or ())
    arguments: list[ProcessTableFunctionArgument] = []
    for name, value in pairs:
        if not isinstance(value, ProcessTableFunctionArgument):
            value = ProcessTableFunctionArgument.scalar(name, value)
        kind = None if value.data_type is None else typed(value.data_type)
        arguments.append(ProcessTableFunctionArgument(name, kind, value.is_table, value.traits))
    names = [argument.name for argument in arguments]
    reserved = next((name for name in SYSTEM_ARGUMENTS if name in names), None)
    if reserved is not None:
        raise ValueError(f"argument {reserved!r} is one that each call has; give it another name")
    return tuple(arguments)


def _named_states(declared: UserValue, typed: Typed) -> tuple[ProcessTableFunctionState, ...]:
    """Return states with names and types, from a sequence or a mapping of them."""
    pairs = declared.items() if isinstance(declared, Mapping) else ((state.name, state) for state in declared or ())
    return tuple(
        ProcessTableFunctionState(name, _state_type(state, typed), state.ttl, state.kind) for name, state in pairs
    )


def _state_type(state: ProcessTableFunctionState, typed: Typed) -> UserValue:
    if state.kind != "value":
        return tuple(map(typed, state.data_type))
    if isinstance(state.data_type, type):
        return state.data_type
    return typed(state.data_type)


def _result_type(function: ProcessTableFunction, result_type: UserValue, typed: Typed) -> DataType:
    if result_type is None:
        remedy = "pass result_type='ROW<name STRING, n BIGINT>'"
        raise InvalidTypesError(f"the result type of function {type(function).__name__} is not known", remedy)
    kind = typed(result_type)
    if kind.root is Root.ROW:
        return kind.not_null()
    return DataTypes.ROW([DataTypes.FIELD("EXPR$0", kind)]).not_null()


def _ensure_signature(
    function: ProcessTableFunction, arguments: Sequence[ProcessTableFunctionArgument],
    states: Sequence[ProcessTableFunctionState],
) -> tuple[UserValue, ...]:  # fmt: skip
    """Check the parameters of `eval` and `on_timer`; return the defaults of arguments.

    Raises:
        ValueError: they are not those that are declared.
    """
    state_names = [state.name for state in states]
    names = [*state_names, *(argument.name for argument in arguments)]
    parameters = _ensure_parameters(eval_of(function), names, "eval")
    on_timer = on_timer_of(function)
    if on_timer is not None:
        _ensure_parameters(on_timer, state_names, "on_timer")
    defaults = [parameters.get(argument.name, inspect.Parameter.empty) for argument in arguments]
    return tuple(REQUIRED if default is inspect.Parameter.empty else default for default in defaults)


def _ensure_parameters(body: Callable[..., UserValue], names: Sequence[str], what: str) -> dict[str, UserValue]:
    """Check the names of the parameters behind the context; return their defaults."""
    if len(set(names)) < len(names):
        raise ValueError(f"Invalid {what}() signature: states and arguments have equal names: {', '.join(names)}")
    try:
        parameters = list(inspect.signature(body).parameters.values())
    except (TypeError, ValueError):  # a callable in C says nothing of them
        return {}
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return {}
    written = [parameter.name for parameter in parameters]
    if len(written) != 1 + len(names) or written[1:] != list(names):
        problem = f"Invalid {what}() signature: found ({', '.join(written)}), wanted ({', '.join(('ctx', *names))})"
        raise ValueError(f"{problem}: the context, then states and arguments in the order in which they are declared")
    return {parameter.name: parameter.default for parameter in parameters}


def _ensure_traits(
    arguments: Sequence[ProcessTableFunctionArgument], states: Sequence[ProcessTableFunctionState], has_timers: bool
) -> None:
    """Check that tables, states and timers go together.

    Raises:
        ValueError: they do not.
    """
    tables = [argument for argument in arguments if argument.is_table]
    is_set = bool(tables) and all(table.is_set for table in tables)
    if len(tables) > 1 and not is_set:
        raise ValueError("several table arguments must all have set semantics: SET_SEMANTIC_TABLE")
    if states and not is_set:
        raise ValueError("State requires a table argument with set semantics: SET_SEMANTIC_TABLE")
    if has_timers and not is_set:
        raise ValueError("Timers require a table argument with set semantics: SET_SEMANTIC_TABLE")
    passes = any(table.has(Trait.PASS_COLUMNS_THROUGH) for table in tables)
    updates = any(table.has(Trait.SUPPORT_UPDATES) for table in tables)
    if passes and (has_timers or updates or len(tables) > 1):
        raise ValueError("pass-through columns go with neither timers, nor updates, nor several tables")
    for table in tables:
        for trait in (Trait.REQUIRE_UPDATE_BEFORE, Trait.REQUIRE_FULL_DELETE):
            if table.has(trait) and not table.has(Trait.SUPPORT_UPDATES):
                raise ValueError(f"{trait.value} of argument {table.name!r} requires SUPPORT_UPDATES")


class ProcessKernel(UserKernel):
    """A process table function in a query.

    Args:
        declaration: what it takes and gives.
        name: for messages.
    """

    def __init__(self, declaration: ProcessDeclaration, name: str) -> None:
        super().__init__(declaration.function, "process", name)
        self.declaration, self.name = declaration, name


__all__ = ["REQUIRED", "SYSTEM_ARGUMENTS", "ProcessDeclaration", "ProcessKernel", "declaration_of"]
