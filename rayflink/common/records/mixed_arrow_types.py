"""Values and types that Arrow would bend to one another, without a word, where they are to be one column."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

_BASES = bool, str, bytes, datetime.date, datetime.time, datetime.timedelta, Decimal


def refuse_mixture(name: str, values: Iterable[Any], decimals: bool = False) -> None:
    """Check that values are of one form, within lists and dicts too; None fits all, and so do numbers each other.

    Arrow makes dates of moments, bytes of strings and so on, and drops a zone.

    >>> refuse_mixture("at", [datetime.date(2013, 1, 1), datetime.datetime(2013, 1, 1, 5)])
    Traceback (most recent call last):
    ...
    TypeError: column 'at' has values of date and datetime

    Args:
        name: of the column.
        decimals: they fit whole numbers.

    Raises:
        TypeError: they are not.
    """
    there = [value for value in values if value is not None]
    forms = _forms(there)
    if len(forms) > 1 and not (decimals and forms == {"Decimal", "number"}):
        raise TypeError(f"column {name!r} has values of {' and '.join(sorted(forms))}")
    if forms == {"list"}:
        refuse_mixture(f"{name}[]", chain.from_iterable(there), decimals)
    elif forms == {"dict"}:
        for part in dict.fromkeys(chain.from_iterable(there)):
            refuse_mixture(f"{name}.{part}", [value.get(part) for value in there], decimals)


def refuse_types(name: str, kinds: Iterable[pyarrow.DataType], decimals: bool = False) -> None:
    """Check the same of types, which are to be joined as far as Arrow can.

    Args:
        name: of the column.
        decimals: they fit whole numbers.

    Raises:
        TypeError: values of these types do not go together.
    """
    import pyarrow

    types = pyarrow.types
    kinds = [kind for kind in dict.fromkeys(kinds) if not types.is_null(kind)]
    zoned = {kind.tz is not None for kind in kinds if types.is_timestamp(kind)}
    alike = len({kind.id for kind in kinds}) < 2 or all(_is_number(kind, decimals) for kind in kinds)
    if not alike or len(zoned) > 1:
        raise TypeError(f"column {name!r} has values of {' and '.join(map(str, kinds))}")
    if len(kinds) > 1 and types.is_list(kinds[0]):
        refuse_types(f"{name}[]", [kind.value_type for kind in kinds], decimals)
    elif len(kinds) > 1 and types.is_struct(kinds[0]):
        fields = list(chain.from_iterable(kinds))
        for part in dict.fromkeys(field.name for field in fields):
            refuse_types(f"{name}.{part}", [field.type for field in fields if field.name == part], decimals)


def _forms(values: Sequence[Any]) -> set[str]:
    kinds = set(map(type, values))
    moments = tuple(kind for kind in kinds if issubclass(kind, datetime.datetime))
    forms = {_form(kind) for kind in kinds.difference(moments)}
    if moments:
        zones = (value.tzinfo for value in values if isinstance(value, moments))
        forms |= {"datetime" if zone is None else "datetime with a zone" for zone in zones}
    return forms


def _form(kind: type) -> str:
    for base in _BASES:
        if issubclass(kind, base):
            return base.__name__
    if issubclass(kind, numbers.Real):
        return "number"
    return "list" if issubclass(kind, (list, tuple)) else "dict" if issubclass(kind, dict) else kind.__name__


def _is_number(kind: pyarrow.DataType, decimals: bool) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or (decimals and types.is_decimal(kind)))


__all__ = ["refuse_mixture", "refuse_types"]
