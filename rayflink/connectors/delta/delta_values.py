"""Values of partitions and statistics of files, as the Delta protocol writes them."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING
from urllib.parse import quote

from rayflink.user_types import UserValue

from ..lakes.partitioned_rows import PartitionValues

if TYPE_CHECKING:
    import pyarrow

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
LONGEST_BOUND = 64
"""Characters of a string in statistics; a longer greatest value is left out."""


def partition_value(value: UserValue) -> str | None:
    """Return a value of a partition as a string; None for NULL, and for the empty string, which Delta reads as NULL.

    >>> import datetime
    >>> [partition_value(value) for value in (True, 7, datetime.date(2024, 2, 1), "a b", "")]
    ['true', '7', '2024-02-01', 'a b', None]
    """
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            return value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")
    return str(value)


def partition_folder(columns: Sequence[str], values: PartitionValues) -> str:
    """Return the folder of a partition as Hive names it.

    >>> partition_folder(["room", "n"], ("a/b", None))
    'room=a%2Fb/n=__HIVE_DEFAULT_PARTITION__'
    """
    shown = [NO_VALUE if (text := partition_value(value)) is None else quote(text, safe="") for value in values]
    return "/".join(f"{quote(name, safe='')}={value}" for name, value in zip(columns, shown, strict=True))


def parsed_partition_value(text: str | None, kind: pyarrow.DataType) -> UserValue:
    """Return the value that a string in the log stands for.

    >>> import pyarrow
    >>> parsed_partition_value("7", pyarrow.int32()), parsed_partition_value("", pyarrow.string())
    (7, None)
    """
    import pyarrow

    if text is None or text == "":
        return None
    if pyarrow.types.is_timestamp(kind):
        naive = pyarrow.scalar(text.removesuffix("Z").replace("T", " ")).cast(pyarrow.timestamp("us")).as_py()
        return naive if kind.tz is None else naive.replace(tzinfo=datetime.timezone.utc)
    if pyarrow.types.is_decimal(kind):
        return Decimal(text)
    return pyarrow.scalar(text).cast(kind).as_py()


def statistics_json(footer: pyarrow.parquet.FileMetaData, schema: pyarrow.Schema) -> str:
    """Return the statistics of a file: the number of rows, and of each column least, greatest and missing values."""
    import pyarrow

    places = (
        {footer.row_group(0).column(i).path_in_schema: i for i in range(footer.num_columns)} if footer.num_rows else {}
    )
    lows: dict[str, UserValue] = {}
    highs: dict[str, UserValue] = {}
    nulls: dict[str, int] = {}
    for field in schema:
        if field.name not in places or pyarrow.types.is_nested(field.type):
            continue
        groups = [
            footer.row_group(group).column(places[field.name]).statistics for group in range(footer.num_row_groups)
        ]  # fmt: skip
        if any(group is None for group in groups):
            continue
        if all(group.has_null_count for group in groups):
            nulls[field.name] = sum(group.null_count for group in groups)
        bounds = [(group.min, group.max) for group in groups if group.has_min_max]
        filled = [group for group in groups if group.num_values]
        if not bounds or len(bounds) < len(filled):
            continue
        low = _bound(min(low for low, _ in bounds), False)
        high = _bound(max(high for _, high in bounds), True)
        if low is not None:
            lows[field.name] = low
        if high is not None and not pyarrow.types.is_floating(field.type):  # NaN is greater, and in no statistics
            highs[field.name] = high
    described = {"numRecords": footer.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls}
    return json.dumps(described)


def _bound(value: UserValue, is_greatest: bool) -> UserValue:
    """Return a bound as JSON has it; None: it has none."""
    if isinstance(value, bool) or isinstance(value, bytes):
        return None
    if isinstance(value, str):
        return value if len(value) <= LONGEST_BOUND else None if is_greatest else value[:LONGEST_BOUND]
    if isinstance(value, datetime.datetime):
        millis = value.microsecond // 1000
        whole = value.replace(microsecond=millis * 1000)
        if is_greatest and whole < value:
            if value > datetime.datetime.max.replace(microsecond=999_000, tzinfo=value.tzinfo):
                return None  # there is no later millisecond
            whole += datetime.timedelta(milliseconds=1)
        return whole.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if value.tzinfo else "")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        number = float(value)  # a JSON number; moved outwards where that is not exact
        if Decimal(number) != value:
            number = math.nextafter(number, math.inf if is_greatest else -math.inf)
        return number
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) else None


def partition_values(columns: Sequence[str], values: PartitionValues) -> Mapping[str, str | None]:
    """Return the values of a partition by column, as strings."""
    return {name: partition_value(value) for name, value in zip(columns, values, strict=True)}


__all__ = [
    "parsed_partition_value", "partition_folder", "partition_value", "partition_values", "statistics_json",
]  # fmt: skip
