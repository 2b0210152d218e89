"""Attributes of a program's objects, which may be fields of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from enum import Enum

from rayflink.user_types import UserValue


def has_attributes(value_class: type) -> bool:
    """Return whether objects of a class have attributes that may be fields of a row."""
    is_own = value_class.__module__ not in ("builtins", "numpy") and not issubclass(value_class, (Enum, type))
    return is_own and (is_dataclass(value_class) or hasattr(value_class, "__dict__"))


def attributes_of(value: UserValue) -> Mapping[str, UserValue]:
    """Return the attributes of an object by name."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclass_fields(value)}
    return vars(value)


__all__ = ["attributes_of", "has_attributes"]
