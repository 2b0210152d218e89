"""Transforms of partition columns, on columns of Arrow, as the Iceberg specification defines them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rayflink.user_types import UserValue

from ..lakes.lake_errors import LakeError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray
    from pyiceberg.table import Table

Transform = Callable[["pyarrow.Array"], "pyarrow.Array"]
_UNITS = {"year": "M8[Y]", "month": "M8[M]", "day": "M8[D]", "hour": "M8[h]"}
_EPOCH = datetime.date(1970, 1, 1)


def partition_keys(table: Table) -> list[tuple[str, Transform]]:
    """Return the column and the transform of each field of a table's newest partition spec.

    Raises:
        LakeError: a field is of a column within another, or its transform is unknown.
    """
    from pyiceberg.transforms import (
        BucketTransform,
        DayTransform,
        HourTransform,
        IdentityTransform,
        MonthTransform,
        TruncateTransform,
        VoidTransform,
        YearTransform,
    )

    times = {YearTransform: "year", MonthTransform: "month", DayTransform: "day", HourTransform: "hour"}
    keys: list[tuple[str, Transform]] = []
    for field in table.spec().fields:
        source = table.schema().find_field(field.source_id)
        name = table.schema().find_column_name(field.source_id)
        if name is None or name not in [column.name for column in table.schema().fields]:
            raise LakeError(
                f"the partition field {field.name!r} is of the nested column {name!r}", "partition by others"
            )
        transform = field.transform
        if isinstance(transform, IdentityTransform):
            keys.append((name, _identity))
        elif isinstance(transform, VoidTransform):
            keys.append((name, _void))
        elif type(transform) in times:
            keys.append((name, partial(_time, times[type(transform)])))
        elif isinstance(transform, BucketTransform):
            keys.append((name, partial(_bucket, transform.num_buckets, transform.transform(source.field_type))))
        elif isinstance(transform, TruncateTransform):
            keys.append((name, partial(_by_value, transform.transform(source.field_type))))
        else:
            raise LakeError(f"the partition field {field.name!r} has the transform {transform}", "it is not supported")
    return keys


def represented(value: UserValue) -> UserValue:
    """Return a value as Iceberg stores it: days of a date, microseconds of a time.

    >>> import datetime
    >>> represented(datetime.date(1970, 1, 3)), represented(datetime.datetime(1970, 1, 1, 0, 0, 1)), represented("a")
    (2, 1000000, 'a')
    """
    if isinstance(value, datetime.datetime):
        zoned = value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)
        since = zoned - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if isinstance(value, datetime.date):
        return (value - _EPOCH).days
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    return value


def _identity(column: pyarrow.Array) -> pyarrow.Array:
    return column


def _void(column: pyarrow.Array) -> pyarrow.Array:
    import pyarrow

    return pyarrow.nulls(len(column), pyarrow.int32())


def _time(unit: str, column: pyarrow.Array) -> pyarrow.Array:
    """Return the years, months, days or hours since 1970 of dates or timestamps."""
    import pyarrow

    is_date = pyarrow.types.is_date(column.type)
    whole = column.cast(pyarrow.int32()) if is_date else column.cast(_micros(column.type)).cast(pyarrow.int64())
    numbers = whole.fill_null(0).to_numpy(zero_copy_only=False).astype("int64")
    moments = numbers.astype("M8[D]" if is_date else "M8[us]")
    return pyarrow.array(moments.astype(_UNITS[unit]).astype("int64"), mask=_missing(column))


def _micros(kind: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow

    return pyarrow.timestamp("us", kind.tz)


def _bucket(buckets: int, of_value: Callable[[Any], int | None], column: pyarrow.Array) -> pyarrow.Array:
    """Return the bucket of each value; those of numbers and times are computed for a whole column."""
    import numpy
    import pyarrow

    kind = column.type
    if pyarrow.types.is_timestamp(kind):
        column = column.cast(_micros(kind)).cast(pyarrow.int64())
    elif pyarrow.types.is_date(kind):
        column = column.cast(pyarrow.int32())
    if not pyarrow.types.is_integer(column.type):
        return _by_value(of_value, column)
    numbers = column.fill_null(0).to_numpy(zero_copy_only=False).astype(numpy.int64)
    bucket_numbers = (_murmur3(numbers) & numpy.uint32(0x7FFFFFFF)).astype(numpy.int64) % buckets
    return pyarrow.array(bucket_numbers, mask=_missing(column))


def _murmur3(numbers: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the 32-bit murmur3 hash of each number's eight bytes, with the seed 0.

    Source: Austin Appleby's MurmurHash3_x86_32; Iceberg's specification, appendix B.
    """
    import numpy

    def rotated(values: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
        turned: NDArray[np.uint32] = (values << numpy.uint32(bits)) | (values >> numpy.uint32(32 - bits))
        return turned

    unsigned = numbers.view(numpy.uint64)
    hashed = numpy.zeros(len(numbers), numpy.uint32)
    for shift in (0, 32):
        block = (unsigned >> numpy.uint64(shift)).astype(numpy.uint32)
        block = rotated(block * numpy.uint32(0xCC9E2D51), 15) * numpy.uint32(0x1B873593)
        hashed = rotated(hashed ^ block, 13) * numpy.uint32(5) + numpy.uint32(0xE6546B64)
    hashed = hashed ^ numpy.uint32(8)
    hashed = (hashed ^ (hashed >> numpy.uint32(16))) * numpy.uint32(0x85EBCA6B)
    hashed = (hashed ^ (hashed >> numpy.uint32(13))) * numpy.uint32(0xC2B2AE35)
    mixed: NDArray[np.uint32] = hashed ^ (hashed >> numpy.uint32(16))
    return mixed


def _by_value(of_value: Callable[[Any], UserValue], column: pyarrow.Array) -> pyarrow.Array:
    """Return the result of a function, which is called once for each distinct value."""
    import pyarrow

    encoded = column.dictionary_encode()
    values = [of_value(represented(value)) for value in encoded.dictionary.to_pylist()]
    return pyarrow.array(values).take(encoded.indices) if values else pyarrow.nulls(len(column))


def _missing(column: pyarrow.Array) -> NDArray[np.bool_]:
    return column.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


__all__ = ["partition_keys", "represented"]
