"""Declarations of the arguments and states of a process table function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from dataclasses import is_dataclass
from datetime import timedelta
from enum import Enum
from typing import TypeAlias

from rayflink.common.time import Duration, to_millis
from rayflink.user_types import UserValue

from ...conversion.object_attributes import has_attributes
from ...types import DataType, Root

Length: TypeAlias = "Duration | timedelta"
"""A length of time."""


class ProcessTableFunctionArgumentTrait(Enum):
    """A property of a table argument of a process table function.

    `ROW_SEMANTIC_TABLE`: each row by itself; `SET_SEMANTIC_TABLE`: the rows of a partition, with state. Further ones:
    `PASS_COLUMNS_THROUGH` (all columns of the row stand before those of the result), `REQUIRE_ON_TIME`,
    `OPTIONAL_PARTITION_BY`, `SUPPORT_UPDATES` (rows may be updated and deleted), `REQUIRE_UPDATE_BEFORE` and
    `REQUIRE_FULL_DELETE`.
    """

    ROW_SEMANTIC_TABLE = "ROW_SEMANTIC_TABLE"
    SET_SEMANTIC_TABLE = "SET_SEMANTIC_TABLE"
    PASS_COLUMNS_THROUGH = "PASS_COLUMNS_THROUGH"
    SUPPORT_UPDATES = "SUPPORT_UPDATES"
    REQUIRE_ON_TIME = "REQUIRE_ON_TIME"
    OPTIONAL_PARTITION_BY = "OPTIONAL_PARTITION_BY"
    REQUIRE_UPDATE_BEFORE = "REQUIRE_UPDATE_BEFORE"
    REQUIRE_FULL_DELETE = "REQUIRE_FULL_DELETE"


Trait = ProcessTableFunctionArgumentTrait


def _normalized(traits: Iterable[Trait] | None) -> frozenset[Trait]:
    """Return traits with the semantics that hold where none are said.

    Raises:
        TypeError: one is no trait.
        ValueError: both semantics are there.
    """
    known = frozenset(traits or ())
    if not all(isinstance(trait, Trait) for trait in known):
        raise TypeError(f"traits are members of ProcessTableFunctionArgumentTrait, found {set(known)!r}")
    semantics = known & {Trait.ROW_SEMANTIC_TABLE, Trait.SET_SEMANTIC_TABLE}
    if len(semantics) > 1:
        raise ValueError("a table argument cannot have both row and set semantics; give one of them")
    return known if semantics else known | {Trait.ROW_SEMANTIC_TABLE}


class ProcessTableFunctionArgument:
    """An argument of a process table function; made by `table` and `scalar`.

    >>> ProcessTableFunctionArgument.table("orders", {ProcessTableFunctionArgumentTrait.SET_SEMANTIC_TABLE}).is_table
    True

    Args:
        name: of the parameter of `eval`.
        data_type: of a scalar, or of the rows of a table; None: a table has any columns.
        is_table: whether it is a table.
        traits: of a table.
    """

    def __init__(
        self, name: str, data_type: DataType | str | None, is_table: bool, traits: Iterable[Trait] = ()
    ) -> None:  # fmt: skip
        self.name, self.data_type, self.is_table = _checked(name, "argument"), data_type, is_table
        self.traits = frozenset(traits)

    @staticmethod
    def scalar(name: str, data_type: DataType | str) -> ProcessTableFunctionArgument:
        """Return a scalar argument.

        Raises:
            TypeError: its type is none.
        """
        return ProcessTableFunctionArgument(name, _type(data_type, "a scalar argument"), False)

    @staticmethod
    def table(
        name: str, traits: Iterable[Trait] | None = None, data_type: DataType | str | None = None
    ) -> ProcessTableFunctionArgument:
        """Return a table argument.

        Raises:
            TypeError: its type or a trait is none.
            ValueError: it has row and set semantics.
        """
        kind = None if data_type is None else _type(data_type, "a table argument")
        return ProcessTableFunctionArgument(name, kind, True, _normalized(traits))

    def has(self, trait: Trait) -> bool:
        """Return whether it has a trait."""
        return trait in self.traits

    @property
    def is_set(self) -> bool:
        """Return whether it is a table whose partitions are worked as sets."""
        return Trait.SET_SEMANTIC_TABLE in self.traits


class ProcessTableFunctionState:
    """A state that a process table function has for each partition; made by `value`, `list_view` and `map_view`.

    >>> ProcessTableFunctionState.value("memory", "ROW<count BIGINT>", ttl=Duration.of_days(1)).name
    'memory'

    Args:
        name: of the parameter of `eval` and `on_timer`.
        data_type: of a value: a ROW, as type or text, or a class whose objects are made without arguments. Of a list
            the type of its elements, of a map those of its keys and values.
        ttl: how long it is known after it was written; None: `table.exec.state.ttl`; a length of 0: for ever.
        kind: "value", "list" or "map".
    """

    def __init__(self, name: str, data_type: UserValue, ttl: Length | None = None, kind: str = "value") -> None:
        self.name, self.data_type, self.kind = _checked(name, "state"), data_type, kind
        if kind == "value" and isinstance(data_type, DataType) and data_type.root is not Root.ROW:
            raise TypeError(f"state {name!r} is {data_type}: a value state must use a ROW, or a class of the program")
        if kind == "value" and isinstance(data_type, type):
            _ensure_simple(name, data_type)
        self.ttl = ttl
        self.ttl_ms = None if ttl is None else _milliseconds(ttl, name)

    @staticmethod
    def value(name: str, data_type: DataType | str | type, ttl: Length | None = None) -> ProcessTableFunctionState:
        """Return a state of one object: a Row whose fields are None at first, or an object of a class.

        Raises:
            TypeError: its type is no ROW and no class.
        """
        return ProcessTableFunctionState(name, data_type, ttl)

    @staticmethod
    def list_view(name: str, element_type: DataType | str, ttl: Length | None = None) -> ProcessTableFunctionState:
        """Return a state that is a ListView: `eval` does not read it as a whole."""
        return ProcessTableFunctionState(name, (element_type,), ttl, "list")

    @staticmethod
    def map_view(
        name: str, key_type: DataType | str, value_type: DataType | str, ttl: Length | None = None
    ) -> ProcessTableFunctionState:
        """Return a state that is a MapView: `eval` reads the entries that it asks for."""
        return ProcessTableFunctionState(name, (key_type, value_type), ttl, "map")


def table_arg(
    data_type: DataType | str | None = None, traits: Iterable[Trait] | None = None
) -> ProcessTableFunctionArgument:
    """Declare a table argument in the mapping of arguments of `udptf`; it has the name of its key.

    >>> table_arg(traits={ProcessTableFunctionArgumentTrait.SET_SEMANTIC_TABLE}).is_set
    True
    """
    return ProcessTableFunctionArgument.table(_UNNAMED, traits, data_type)


def value_state(data_type: DataType | str | type, ttl: Length | None = None) -> ProcessTableFunctionState:
    """Declare a state of one object in the mapping of states of `udptf`; see `ProcessTableFunctionState.value`.

    >>> value_state("ROW<count BIGINT>", ttl=Duration.of_hours(1)).ttl_ms
    3600000
    """
    return ProcessTableFunctionState.value(_UNNAMED, data_type, ttl)


def list_view(element_type: DataType | str, ttl: Length | None = None) -> ProcessTableFunctionState:
    """Declare a state that is a ListView in the mapping of states of `udptf`.

    >>> list_view("STRING").kind
    'list'
    """
    return ProcessTableFunctionState.list_view(_UNNAMED, element_type, ttl)


def map_view(
    key_type: DataType | str, value_type: DataType | str, ttl: Length | None = None
) -> ProcessTableFunctionState:
    """Declare a state that is a MapView in the mapping of states of `udptf`.

    >>> map_view("STRING", "INT").kind
    'map'
    """
    return ProcessTableFunctionState.map_view(_UNNAMED, key_type, value_type, ttl)


_UNNAMED = "unnamed"


def _checked(name: str, what: str) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of an {what} is a string that is not empty, found {name!r}")
    return name


def _type(data_type: UserValue, what: str) -> DataType | str:
    if isinstance(data_type, (DataType, str)):
        return data_type
    raise TypeError(f"{what} has a type such as DataTypes.STRING() or 'STRING', found {data_type!r}")


def _ensure_simple(name: str, value_class: type) -> None:
    """Check that objects of a class are made without arguments, and have attributes that can be set.

    Raises:
        TypeError: they are not, or have none.
    """
    problem = f"state {name!r} is of class {value_class.__name__}"
    is_frozen = is_dataclass(value_class) and value_class.__dataclass_params__.frozen  # type: ignore[attr-defined]
    if is_frozen or not has_attributes(value_class) or value_class.__module__ in sys.stdlib_module_names:
        raise TypeError(f"{problem}, whose objects do not change; give a class with attributes, or a ROW")
    parameters = inspect.signature(value_class).parameters.values()
    needed = [parameter.name for parameter in parameters if parameter.default is parameter.empty
              and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)]  # fmt: skip
    if needed:
        raise TypeError(f"{problem}, which is made with {', '.join(needed)}; give its parameters default values")


def _milliseconds(ttl: Length, name: str) -> int:
    if not isinstance(ttl, (Duration, timedelta)) or (length := to_millis(ttl)) < 0:
        raise TypeError(f"the ttl of state {name!r} is a Duration of 0 or more, found {ttl!r}")
    return length


__all__ = [
    "ProcessTableFunctionArgument", "ProcessTableFunctionArgumentTrait", "ProcessTableFunctionState", "Trait",
    "list_view", "map_view", "table_arg", "value_state",
]  # fmt: skip
