"""The operations of every type of the type system: check, convert, compare, describe itself."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from rayflink.user_types import UserValue

from ..errors import InvalidTypesError, TypeMismatch, shorten

if TYPE_CHECKING:
    from .type_serializers import TypeSerializer

__all__ = ["Fault", "TypeInformation"]


_NONE = type(None)
_LONGEST_TYPE = 200
_Info = TypeVar("_Info", bound="TypeInformation")


class Fault(NamedTuple):
    """The place inside a value where the type does not hold."""

    path: str
    actual: str
    wanted: str
    remedy: str


class TypeInformation:
    """The type of the values of a stream or a state; compares by content, hashes, pickles.

    Declaring a type is optional everywhere. Where one is declared, `check` holds values to it and `convert` gives
    them the form Flink's type has (a FLOAT rounds to 32 bits, a tuple declared as ROW becomes a Row).
    """

    accepts_none: ClassVar[bool] = True
    """True where None is a value of the type itself; as a field or element, None is always one."""
    python_form: ClassVar[str] = "a value"
    """A description of what to pass, for error messages."""
    is_declared: ClassVar[bool] = True
    """True where the program declared it, and records are checked; else it is known of them, as of a table's rows."""

    def check(self, value: UserValue, where: str = "value", line: str = "") -> None:
        """Check that one value is of the type.

        Args:
            where: what is being checked, for the message: ``result of map 'parse'``.
            line: ``file:line`` of the program that declared the type.
        Raises: TypeMismatch: names the position, what was found, what was wanted, and the remedy.
        """
        fault = self._fault(value, "") if value is not None or not self.accepts_none else None
        if fault is not None:
            raise TypeMismatch(where, fault.path, fault.actual, fault.wanted, fault.remedy, line)

    def check_batch(self, values: Sequence[Any], where: str = "value", line: str = "") -> None:
        """Check each value, without a Python loop where all values are of the exact Python type.

        Raises: TypeMismatch: for the first value that is not of the type.
        """
        if not self._column_fits(values):
            for value in values:
                self.check(value, where, line)

    def convert(self, value: UserValue, where: str = "value", line: str = "") -> Any:
        """Check one value and return it in the type's own form; the value itself where that is its form already."""
        self.check(value, where, line)
        return self.convert_field(value)

    def convert_batch(self, values: Sequence[Any], where: str = "value", line: str = "") -> Sequence[Any]:
        """Convert each value; `values` itself is returned where nothing changes."""
        self.check_batch(values, where, line)
        return self._convert_column(values)

    def of_other_times(self) -> TypeInformation:
        """Return the type of such records where their event times are no more those that one of their fields holds."""
        return self

    def in_state(self: _Info) -> _Info:
        """Return the type as keyed state holds its values: as here, but a FLOAT keeps the precision a Python float has.

        PyFlink's state holds the Python object, so a sum kept in FLOAT state is not rounded at each update.
        """
        parts = {name: _in_state(part) for name, part in vars(self).items()}
        if all(parts[name] is part for name, part in vars(self).items()):
            return self
        form = copy.copy(self)
        vars(form).update(parts)
        return form

    def serializer(self) -> TypeSerializer:
        """Return the versioned serializer of the type's values."""
        from .type_serializers import TypeSerializer  # which imports this module

        return TypeSerializer(self)

    def create_serializer(self, execution_config: object = None) -> TypeSerializer:
        """Return the versioned serializer of the type's values; the name in Flink of `serializer`."""
        return self.serializer()

    # What subclasses say. `_fault` sees None only where the type does not accept it; `_convert_value` never does and
    # may rely on the check; columns may hold None, which is why those of fields go through `field_column_fits`.

    def _parameters(self) -> tuple[Any, ...]:
        """Return the parameters that distinguish two types of one class."""
        return ()

    def _fault(self, value: UserValue, path: str) -> Fault | None:
        """Return why the value is not of the type, or None."""
        raise NotImplementedError(f"{type(self).__name__}._fault")

    def _column_fits(self, values: Sequence[Any]) -> bool:
        """Return True only if all values are surely of the type and none is None; False means look at each."""
        return False

    def _convert_value(self, value: UserValue) -> Any:
        return value

    def _convert_column(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return all values converted; `values` itself where nothing changes."""
        return _same_or(values, [self.convert_field(value) for value in values])

    def convert_field(self, value: UserValue) -> Any:
        """Return a field or element in the type's own form; it is of the type, or None."""
        return None if value is None else self._convert_value(value)

    def field_fault(self, value: UserValue, path: str) -> Fault | None:
        """Return why a field or element is not of the type, or None; None is allowed there as a value."""
        return None if value is None else self._fault(value, path)

    def field_column_fits(self, values: Sequence[Any]) -> bool:
        """Return True only if all fields or elements are surely of the type, or None; False means look at each."""
        if _NONE in set(map(type, values)):
            values = [value for value in values if value is not None]
        return self._column_fits(values)

    def _mismatch(self, value: UserValue, path: str, actual: str = "") -> Fault:
        from .type_hints import infer_type  # which imports this module

        actual = actual or (f"{type(value).__name__} {shorten(value, 80)}" if value is not None else "None")
        remedy = f"give {self.python_form}"
        if value is not None:
            inferred = infer_type(value)
            if inferred != self:
                remedy += f", or declare the type as {_short(inferred)}"
        return Fault(path, actual, _short(self), remedy)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parameters() == other._parameters()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._parameters()))

    def __repr__(self) -> str:
        return type(self).__name__


def _short(info: TypeInformation) -> str:
    text = str(info)
    return text if len(text) <= _LONGEST_TYPE else f"{text[:_LONGEST_TYPE]}... ({len(info._parameters())} fields)"


def _in_state(part: object) -> Any:
    if isinstance(part, TypeInformation):
        return part.in_state()
    if isinstance(part, tuple) and any(isinstance(field, TypeInformation) for field in part):
        fields = tuple(map(_in_state, part))
        return part if all(old is new for old, new in zip(part, fields, strict=True)) else fields
    return part


def _same_or(values: Sequence[Any], converted: list[Any]) -> Sequence[Any]:
    """Return `values` where each converted value is the value itself, else the converted ones."""
    return values if all(old is new for old, new in zip(values, converted, strict=True)) else converted


def only_types(fields: Iterable[Any], owner: str) -> tuple[TypeInformation, ...]:
    """Return the fields as a tuple. Raises: InvalidTypesError: one is not a TypeInformation."""
    types = tuple(fields)
    for field in types:
        if not isinstance(field, TypeInformation):
            raise InvalidTypesError(
                f"{owner} is made of TypeInformation, found {shorten(field, 80)}",
                "use for example Types.STRING(), or to_type_info() for a Python type",
            )
    return types
