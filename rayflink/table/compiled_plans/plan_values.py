"""The fields of nodes as JSON, and back: types as SQL, expressions, constants, frozen dataclasses.

Where a field's annotation names the class of its value, the value stands alone: a type as "BIGINT NOT NULL", a member
of an enum by its name, a dataclass as its fields. Any other value is an object with one key, which says its class:
`{"Column": {"type": "INT", "index": 0, "name": "n"}}`. An array is a tuple. A field that is None is absent.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from functools import lru_cache, reduce
from operator import or_

from ..catalog.stored_definitions import Fields
from ..errors import SqlError
from ..parsing.statement_parser import parse_type
from ..plan.changelog import Change
from ..plan.logical import Relation
from ..plan.typed import Call, Function
from ..types import CharType, DataType
from .plan_forms import COMPILE_AGAIN, ensure_form
from .plan_types import ENUM_NAMES, ENUM_TYPES, VALUE_NAMES, VALUE_TYPES, stored_fields

_NODE, _FUNCTION, _TYPE, _LIST, _MAP, _DOUBLE = "node", "Function", "DataType", "LIST", "MAP", "DOUBLE"
_CHANGE, _CHANGES = "Change", (Change.INSERT, Change.UPDATE, Change.DELETE)


class ValueWriter:
    """Writes values.

    Args:
        node_of: returns the number of the node of a relation.
        write_function: returns a function as JSON.
    """

    def __init__(self, node_of: Callable[[Relation], int], write_function: Callable[[Function], object]) -> None:
        self._node_of, self._write_function = node_of, write_function

    def write(self, value: object, kind: str = "") -> object:
        """Return a value as JSON.

        Args:
            kind: name of the class that the reader expects; "": it expects none.

        Raises:
            SqlError: it is of a class that plans do not have.
        """
        if isinstance(value, Change):
            return _named(_CHANGE, [kind.name for kind in _CHANGES if kind in value], kind, value)
        if isinstance(value, Enum):
            return _named(ENUM_NAMES.get(type(value), ""), value.name, kind, value)
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {_DOUBLE: repr(value)}
        if isinstance(value, tuple):
            return [self.write(item, kind) for item in value]
        if isinstance(value, DataType):
            return _named(_TYPE, type_text(value), kind, value)
        if isinstance(value, Function):
            return _named(_FUNCTION, self._write_function(value), kind, value)
        if isinstance(value, Relation):
            return {_NODE: self._node_of(value)}
        if isinstance(value, list):
            return {_LIST: [self.write(item) for item in value]}
        if isinstance(value, Mapping):
            return {_MAP: [[self.write(key), self.write(item)] for key, item in value.items()]}
        for name, (scalar, write, _) in _SCALARS.items():
            if isinstance(value, scalar):
                return {name: write(value)}
        return _named(VALUE_NAMES.get(type(value), ""), self.fields(value), kind, value)

    def fields(self, value: object) -> Fields:
        """Return the fields of a dataclass.

        Raises:
            SqlError: one is of a class that plans do not have.
        """
        kind: type = type(value)
        if kind not in VALUE_NAMES and not isinstance(value, Relation):
            return {}
        values = ((field, getattr(value, field.name)) for field in stored_fields(kind))
        return {
            field.name: self.write(item, field.kind)
            for field, item in values
            if item is not None or not field.is_none_absent
        }


class ValueReader:
    """Reads values.

    Args:
        relation_of: returns the relation of a node.
        read_function: returns the function of its JSON.
    """

    def __init__(self, relation_of: Callable[[int], Relation], read_function: Callable[[object], Function]) -> None:
        self._relation_of, self._read_function = relation_of, read_function

    def read(self, value: object, kind: str = "") -> object:
        """Return the value of its JSON.

        Raises:
            SqlError: it is of a kind that this version does not know.
        """
        if kind == _CHANGE and isinstance(value, list):
            return reduce(or_, (change for change in _CHANGES if change.name in value), Change.NONE)
        if isinstance(value, list):
            return tuple(self.read(item, kind) for item in value)
        if value is None or not kind:
            return self._tagged(value) if isinstance(value, dict) else value
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _TAGS:
            return self._tagged(value)
        return self._of_kind(value, kind)

    def fields(self, kind: type, values: Fields, what: str) -> Fields:
        """Return the fields of a dataclass.

        Args:
            what: is named in errors.

        Raises:
            SqlError: there is one that this version does not know, or one is missing.
        """
        known = {field.name: field for field in stored_fields(kind)}
        if unknown := sorted(values.keys() - known.keys()):
            raise SqlError(f"{what} has the field {unknown[0]!r}, which this version does not know", COMPILE_AGAIN)
        absent = [field for name, field in known.items() if name not in values]
        if missing := [field.name for field in absent if not field.may_be_absent]:
            raise SqlError(f"{what} lacks the field {missing[0]!r}", COMPILE_AGAIN)
        nothing = {field.name: None for field in absent if not field.has_default}
        present = {name: self.read(value, known[name].kind) for name, value in values.items()}
        for name, value in present.items():
            ensure_form(value, known[name].annotation, f"{what} has the field {name!r}")
        return {**nothing, **present}

    def _tagged(self, value: Fields) -> object:
        try:
            return self._of_tag(value)
        except (ValueError, TypeError, ArithmeticError) as error:  # a constant without its form, such as DECIMAL 'x'
            raise SqlError(f"{value!r:.80} is no value of a plan: {error}", COMPILE_AGAIN) from error

    def _of_tag(self, value: Fields) -> object:
        name, content = next(iter(value.items())) if len(value) == 1 else ("", None)
        if name == _NODE and isinstance(content, int):
            return self._relation_of(content)
        if name == _DOUBLE and isinstance(content, str):
            return float(content)
        if name == _LIST and isinstance(content, list):
            return [self.read(item) for item in content]
        if name == _MAP and isinstance(content, list):
            return {self.read(key): self.read(item) for key, item in content}
        if name in _SCALARS:
            return _SCALARS[name][2](content)
        return self._of_kind(content, name)

    def _of_kind(self, value: object, kind: str) -> object:
        if kind == _TYPE and isinstance(value, str):
            return _type(value)
        if kind == _FUNCTION:
            return self._read_function(value)
        if kind in ENUM_TYPES and isinstance(value, str) and value in ENUM_TYPES[kind].__members__:
            return ENUM_TYPES[kind][value]
        if kind in VALUE_TYPES and isinstance(value, dict):
            result: object = VALUE_TYPES[kind](**self.fields(VALUE_TYPES[kind], value, kind))
            if isinstance(result, Call):
                _ensure_type(result)
            return result
        raise SqlError(f"{value!r} is no {kind or 'value'} that this version knows", COMPILE_AGAIN)


def _ensure_type(call: Call) -> None:
    """Check that a function of the user's own gives what it gave when the plan was compiled.

    Raises:
        SqlError: it gives another type, or takes other arguments.
    """
    if call.function.is_built_in:
        return
    result = call.function.result(call.args, call.options)
    if isinstance(result, str) or result.nullable() != call.type.nullable():
        now = f"takes {result}" if isinstance(result, str) else f"gives {result}"
        problem = f"the function {call.function.name} {now}, and in the plan {call} is of the type {call.type}"
        raise SqlError(problem, f"register the function as it was, or {COMPILE_AGAIN}")


def type_text(data_type: DataType) -> str:
    """Return a type as SQL.

    Raises:
        SqlError: SQL has no name for it.
    """
    text = str(data_type)
    if _type(text) != data_type:
        problem = f"the type {text} has no form in SQL from which it could be read again"
        raise SqlError(problem, "CAST it to another type in the query, or run it without compiling a plan")
    return text


@lru_cache(maxsize=10_000)
def _type(text: str) -> DataType:
    if text.startswith("CHAR(0)"):  # of a constant without a character, which no column of a table has
        return CharType(0, not text.endswith("NOT NULL"))
    return parse_type(text)


def _named(name: str, content: object, kind: str, value: object) -> object:
    if not name:
        problem = f"a value of the class {type(value).__name__} has no form in a plan"
        raise SqlError(problem, "leave it out of the query, or run it without compiling a plan")
    return content if name == kind else {name: content}


_EPOCH = datetime.timedelta(microseconds=1)
_SCALARS: dict[str, tuple[type, Callable[..., object], Callable[..., object]]] = {
    "DECIMAL": (Decimal, str, Decimal),
    "TIMESTAMP": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "DATE": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "TIME": (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    "MICROSECONDS": (datetime.timedelta, lambda value: value // _EPOCH, lambda number: number * _EPOCH),
    "BYTES": (bytes, bytes.hex, bytes.fromhex),
}
"""Tag -> class of a Python value, how it is written, and how it is read; a subclass comes before its base class."""
_TAGS = {_NODE, _TYPE, _FUNCTION, _LIST, _MAP, _DOUBLE, *_SCALARS, *VALUE_TYPES, *ENUM_TYPES}

__all__ = ["ValueReader", "ValueWriter", "type_text"]
