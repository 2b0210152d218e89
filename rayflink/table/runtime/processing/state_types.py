"""The declared types of the states of process table functions: which values they take, and what snapshots say of them.

A value is checked where it is written. Its class decides: text is no number and a number no text, while whole numbers
are values of DECIMAL, FLOAT and DOUBLE, too. A snapshot names types without their lengths, precisions and nullability,
which do not change how values are stored.
"""

from __future__ import annotations

import datetime
from array import array
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import numpy as np

from rayflink.common.errors import TypeMismatch, shorten
from rayflink.common.time import Duration, Instant
from rayflink.common.types import Row
from rayflink.state.classes.class_schemas import schema_of
from rayflink.user_types import UserValue

from ...conversion.object_attributes import attributes_of, has_attributes
from ...types import DataType, Root

_WHOLE = (int, np.integer)
_REAL = (float, np.floating, *_WHOLE)
_CLASSES: dict[Root, tuple[type, ...]] = {
    Root.BOOLEAN: (bool, np.bool_),
    **dict.fromkeys((Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT, Root.INTERVAL_YEAR_MONTH), _WHOLE),
    **dict.fromkeys((Root.FLOAT, Root.DOUBLE), _REAL),
    Root.DECIMAL: (Decimal, *_WHOLE),
    **dict.fromkeys((Root.CHAR, Root.VARCHAR), (str,)),
    **dict.fromkeys((Root.BINARY, Root.VARBINARY), (bytes, bytearray, memoryview)),
    Root.DATE: (datetime.date,),
    Root.TIME: (datetime.time,),
    **dict.fromkeys((Root.TIMESTAMP, Root.TIMESTAMP_LTZ, Root.TIMESTAMP_TZ), (datetime.datetime, Instant)),
    Root.INTERVAL_DAY_TIME: (datetime.timedelta, Duration),
    Root.ARRAY: (list, tuple, array, np.ndarray),
    Root.MAP: (Mapping,),
    Root.MULTISET: (Mapping, list, tuple),
}
"""Classes of values; those of other roots may be of any."""
_NAMES = {
    Root.CHAR: "STRING", Root.VARCHAR: "STRING", Root.BINARY: "BYTES", Root.VARBINARY: "BYTES",
}  # fmt: skip
_HINTS = {
    "bool": "BOOLEAN", "int": "BIGINT", "float": "DOUBLE", "str": "STRING", "bytes": "BYTES",
    "decimal:Decimal": "DECIMAL", "datetime:date": "DATE", "datetime:time": "TIME", "datetime:datetime": "TIMESTAMP",
    "datetime:timedelta": "INTERVAL DAY TO SECOND",
}  # fmt: skip


class StateType:
    """The type of the values of a state, or of what is in them; a `DeclaredType` of state descriptors.

    Args:
        kind: the type.
        function: name of the function, for errors.
    """

    def __init__(self, kind: DataType, function: str) -> None:
        self.kind, self._function = kind, function
        self._classes = _CLASSES.get(kind.root)
        self._takes_truth = self._classes is None or bool in self._classes
        self._items = [state_type(item, function) for item in kind.items]

    def convert(self, value: UserValue, where: str) -> UserValue:
        """Return the value.

        Raises:
            TypeMismatch: it is not of the type; the error names the function, `where` and the place in the value.
        """
        self.check(value, where, "")
        return value

    def check(self, value: UserValue, where: str, path: str) -> None:
        """Check a value, and those in it, which stand at `path` in the value that is stored.

        Raises:
            TypeMismatch: it is not of the type.
        """
        if value is None or self._classes is None:
            return
        if not isinstance(value, self._classes) or (value.__class__ is bool and not self._takes_truth):
            raise self._mismatch(value, where, path)
        if self._items:
            self._check_items(value, where, path)

    def _check_items(self, value: UserValue, where: str, path: str) -> None:
        columns: Iterable[Iterable[UserValue]] = (value,)
        if isinstance(value, Mapping):
            columns = (value.keys(), value.values())
        elif isinstance(value, array) or (isinstance(value, np.ndarray) and value.dtype != np.object_):
            columns = (value[:1],)  # all are of its class
        for item, column in zip(self._items, columns, strict=False):
            for element in column:
                item.check(element, where, f"{path}[...]")

    def _mismatch(self, value: UserValue, where: str, path: str) -> TypeMismatch:
        actual = f"{type(value).__name__} {shorten(value, 80)}"
        remedy = "write a value of the declared type, or declare the type of what is written"
        return TypeMismatch(f"{where} of function {self._function}", path, actual, str(self.kind), remedy)

    def __str__(self) -> str:
        name = _NAMES.get(self.kind.root, self.kind.root.value)
        if self.kind.root is Root.USER_DEFINED:
            name = str(self.kind.as_nullable(True))
        return f"{name}<{', '.join(map(str, self._items))}>" if self._items else name


class RowStateType(StateType):
    """The type of rows: Rows, or their fields by name or by position.

    Args:
        kind: a ROW.
        function: name of the function, for errors.
    """

    def __init__(self, kind: DataType, function: str) -> None:
        super().__init__(kind, function)
        self._names = [field.name for field in kind.fields]
        self._fields = {field.name: state_type(field.type, function) for field in kind.fields}

    def get_field_names(self) -> list[str]:
        """Return the names in order."""
        return self._names

    def get_field_types(self) -> list[StateType]:
        """Return the types of the fields in order."""
        return list(self._fields.values())

    def check(self, value: UserValue, where: str, path: str) -> None:
        if value is None:
            return
        content = self._by_name(value)
        if content is None:
            raise self._mismatch(value, where, path)
        for name, kind in self._fields.items():
            element = content.get(name)
            if element is not None:
                kind.check(element, where, f"{path}.{name}")

    def _by_name(self, value: UserValue) -> Mapping[str, UserValue] | None:
        """Return the fields of a value by name; None where it is no such row."""
        if isinstance(value, dict):
            return value
        if isinstance(value, Row):
            names = getattr(value, "_fields", None)
            if names is not None and set(names) == set(self._names):
                return dict(zip(names, value, strict=True))
            value = list(value)
        if isinstance(value, (tuple, list)):
            return dict(zip(self._names, value, strict=True)) if len(value) == len(self._names) else None
        return attributes_of(value) if has_attributes(type(value)) else None

    def __str__(self) -> str:
        return f"ROW<{', '.join(f'{name} {kind}' for name, kind in self._fields.items())}>"


class ClassStateType:
    """The fields of a dataclass with the types of its annotations, which a snapshot names; they hold no value to them.

    Args:
        value_class: the dataclass.
    """

    def __init__(self, value_class: type) -> None:
        schema = schema_of(value_class)
        fields = () if schema is None else schema.fields
        self._fields = {name: _HINTS.get(kind.removeprefix("None | ")) for name, kind in fields}
        self._name = value_class.__qualname__

    def convert(self, value: UserValue, where: str) -> UserValue:
        """Return the value."""
        return value

    def get_field_names(self) -> list[str]:
        """Return the names in order."""
        return list(self._fields)

    def get_field_types(self) -> Sequence[str | None]:
        """Return the types of the fields in order; None: any."""
        return list(self._fields.values())

    def __str__(self) -> str:
        fields = (f"{name}: {kind or 'any'}" for name, kind in self._fields.items())
        return f"{self._name}({', '.join(fields)})"


def state_type(kind: DataType, function: str) -> StateType:
    """Return the type of values of a state."""
    return (RowStateType if kind.root is Root.ROW else StateType)(kind, function)


__all__ = ["ClassStateType", "RowStateType", "StateType", "state_type"]
