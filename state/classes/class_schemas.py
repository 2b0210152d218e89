"""Schemas of record classes in state: the fields of a class, and the classes in a value."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from itertools import islice
from typing import Any, Literal

Form = Literal["dataclass", "named tuple", "object"]
_ANY = frozenset({"Any", "object"})
_WIDER = {"bool": {"int", "float"}, "int": {"float", "complex"}, "float": {"complex"}}
_DEPTH = 6
_ELEMENTS = 8
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes})


@dataclass(frozen=True, slots=True)
class ClassSchema:
    """A class as it was when state was written.

    Args:
        name: `module:qualname`.
        form: what it is; an "object" has fields that its class does not tell.
        fields: name and type of each, in order; the type as text, "" where it is not known.
    """

    name: str
    form: Form
    fields: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the fields."""
        return tuple(name for name, _ in self.fields)

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON values."""
        return {"form": self.form, "fields": [list(field) for field in self.fields]}

    @staticmethod
    def from_json(name: str, fields: Mapping[str, Any]) -> ClassSchema:
        """Rebuild a schema from what `to_json` returned."""
        return ClassSchema(name, fields["form"], tuple((field, kind) for field, kind in fields["fields"]))


def schema_of(cls: type) -> ClassSchema | None:
    """Return the fields of a class; None for Python's own classes and for enums, whose members are stored by name.

    >>> from fractions import Fraction
    >>> schema_of(ClassSchema).names
    ('name', 'form', 'fields')
    >>> schema_of(Fraction) is None
    True
    """
    if issubclass(cls, Enum) or cls.__module__.partition(".")[0] in sys.stdlib_module_names - {"__main__"}:
        return None
    name = name_of(cls)
    if dataclasses.is_dataclass(cls):
        hints = _hints(cls)
        fields = ((field.name, type_text(hints.get(field.name, field.type))) for field in dataclasses.fields(cls))
        return ClassSchema(name, "dataclass", tuple(fields))
    if is_named_tuple(cls):
        hints, names = _hints(cls), getattr(cls, "_fields", ())
        return ClassSchema(name, "named tuple", tuple((field, type_text(hints.get(field, ""))) for field in names))
    return ClassSchema(name, "object")


def is_named_tuple(cls: type) -> bool:
    """Return whether a class is a class of named tuples."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def name_of(cls: type) -> str:
    """Return the class as `module:qualname`."""
    return f"{cls.__module__}:{cls.__qualname__}"


def found_class(name: str) -> type | None:
    """Return the class of that name in this process; None where there is none."""
    module_name, _, qualname = name.partition(":")
    try:
        result: Any = import_module(module_name)
        for part in qualname.split("."):
            result = getattr(result, part)
    except Exception:  # a module that cannot be imported may raise anything
        return None
    return result if isinstance(result, type) else None


def classes_in(value: object, schemas: dict[str, ClassSchema], depth: int = _DEPTH) -> None:
    """Add the classes of records in a value: its own, and those of some of what it holds."""
    cls = value.__class__
    if cls in _PLAIN or depth == 0:
        return
    if cls.__module__ != "builtins" and name_of(cls) not in schemas:
        schema = schema_of(cls)
        if schema is not None:
            schemas[schema.name] = schema
            _add_hinted(cls, schemas)
    for part in islice(_parts(value), _ELEMENTS):
        classes_in(part, schemas, depth - 1)


def type_text(hint: object) -> str:
    """Return a type hint as a string, the same for the same type however it is written.

    >>> type_text(typing.Optional[int]), type_text(list[str | None]), type_text("Cart")
    ('None | int', 'list[None | str]', 'Cart')
    """
    if hint is None or hint is type(None):
        return "None"
    if isinstance(hint, str):
        return hint.strip()
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union or origin is types.UnionType:
        return " | ".join(sorted(set(map(type_text, arguments))))
    if origin is typing.Annotated:
        return type_text(arguments[0])
    if origin is not None and isinstance(origin, type):
        names = ("..." if argument is ... else type_text(argument) for argument in arguments)
        return f"{type_text(origin)}[{', '.join(names)}]"
    if isinstance(hint, type):
        return hint.__qualname__ if hint.__module__ == "builtins" else name_of(hint)
    return str(hint).removeprefix("typing.")


def takes(new: str, old: str) -> bool:
    """Return whether a field of type `new` accepts the values of one of type `old`, both as `type_text` returns them.

    >>> takes("float", "int"), takes("None | str", "str"), takes("int", "str")
    (True, True, False)
    """
    if new == old or not new or not old or _ANY & {new, old}:
        return True
    kinds = set(new.split(" | "))
    return all(kind in kinds or bool(_WIDER.get(kind, set()) & kinds) for kind in old.split(" | "))


def _add_hinted(cls: type, schemas: dict[str, ClassSchema]) -> None:
    """Add the record classes that the fields of a class are declared to hold."""
    for hint in _hints(cls).values():
        for part in _types_in(hint):
            if (dataclasses.is_dataclass(part) or is_named_tuple(part)) and name_of(part) not in schemas:
                schema = schema_of(part)
                if schema is not None:
                    schemas[schema.name] = schema
                    _add_hinted(part, schemas)


def _types_in(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and not typing.get_args(hint):
        yield hint
    for part in typing.get_args(hint):
        yield from _types_in(part)


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except Exception:  # a name in an annotation may be unknown at run time
        return dict(getattr(cls, "__annotations__", {}))


def _parts(value: object) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for key, part in islice(value.items(), _ELEMENTS):
            yield key
            yield part
    elif isinstance(value, (tuple, list, Set)):
        yield from islice(value, _ELEMENTS)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield getattr(value, field.name, None)
    else:
        yield from getattr(value, "__dict__", {}).values()


__all__ = [
    "ClassSchema", "classes_in", "found_class", "is_named_tuple", "name_of", "schema_of", "takes", "type_text",
]  # fmt: skip
