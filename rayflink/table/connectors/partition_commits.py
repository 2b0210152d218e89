"""Options `sink.partition-commit.*`: when partitions are complete, and how that is marked."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from rayflink.common.options.option_types import DURATION
from rayflink.connectors.files.buckets import zone_of
from rayflink.connectors.files.success_files import SuccessFiles

from ..errors import SqlError
from .contract import Connected, Option
from .option_values import one_of, typed
from .partitions import unescape

_PREFIX = "sink.partition-commit"


def _policy(text: str) -> str:
    if text != "success-file":
        raise ValueError("success-file; there is no metastore, and no class of one's own")
    return text


def _zone(text: str) -> str:
    zone_of(text)
    return text


OPTIONS: Mapping[str, Option] = {
    f"{_PREFIX}.trigger": Option(one_of("process-time", "partition-time"), "process-time"),
    f"{_PREFIX}.delay": Option(typed(DURATION)),
    f"{_PREFIX}.watermark-time-zone": Option(_zone, "UTC"),
    f"{_PREFIX}.policy.kind": Option(_policy),
    f"{_PREFIX}.success-file.name": Option(str, "_SUCCESS"),
    "partition.time-extractor.kind": Option(one_of("default"), "default"),
    "partition.time-extractor.timestamp-pattern": Option(str),
    "partition.time-extractor.timestamp-formatter": Option(str),
}


def success_files(table: Connected) -> SuccessFiles | None:
    """Return the files that mark the partitions of a table as complete; None: there are none.

    Raises:
        SqlError: the table has no partitions, or the time of one cannot be computed.
    """
    options = table.options
    if options[f"{_PREFIX}.policy.kind"] is None:
        return None
    if not table.partition_keys:
        problem = f"{table.table} has '{_PREFIX}.policy.kind', and is not partitioned"
        raise SqlError(problem, "write PARTITIONED BY, or leave the option out")
    delay, time_of = options[f"{_PREFIX}.delay"], None
    if options[f"{_PREFIX}.trigger"] == "partition-time":
        pattern = options["partition.time-extractor.timestamp-pattern"] or f"${table.partition_keys[0]}"
        formatter = options["partition.time-extractor.timestamp-formatter"]
        time_of = PartitionTime(table.partition_keys, pattern, formatter, options[f"{_PREFIX}.watermark-time-zone"])
    name = options[f"{_PREFIX}.success-file.name"]
    if name[:1] not in ("_", "."):
        remedy = "begin it with _ or a dot"
        raise SqlError(f"'{_PREFIX}.success-file.name' is {name!r}, which would be read as a file of rows", remedy)
    return SuccessFiles(name, 0 if delay is None else delay.to_millis(), time_of)


class PartitionTime:
    """The time for which the rows of a partition are, epoch milliseconds.

    >>> PartitionTime(["day", "hour"], "$day $hour:00:00", None, "UTC")("day=1970-01-02/hour=03")
    97200000

    Args:
        keys: of the partitions.
        pattern: a text with `$key` for the value of a key.
        formatter: how it is a time, as Java's DateTimeFormatter; None: 2020-01-02, with 03:04:05 behind or without.
        zone: of the time.
    """

    def __init__(self, keys: Any, pattern: str, formatter: str | None, zone: str) -> None:
        self._keys = sorted(keys, key=len, reverse=True)
        self._pattern, self._formatter, self._zone = pattern, formatter, zone

    def __call__(self, bucket: str) -> int:
        """Return the time of a partition by its path.

        Raises:
            ValueError: it is no time.
        """
        values = dict(folder.partition("=")[::2] for folder in bucket.split("/"))
        text = self._pattern
        for key in self._keys:
            text = text.replace(f"${key}", unescape(values[key]))
        time = self._local(text)
        return int(time.replace(tzinfo=zone_of(self._zone)).timestamp() * 1000)

    def _local(self, text: str) -> datetime.datetime:
        try:
            if self._formatter is None:
                return datetime.datetime.fromisoformat(text)
            import pyarrow

            from ..functions.times.time_patterns import read  # slow: it loads pyarrow

            days, since_midnight, valid, _ = read(pyarrow.array([text]), self._formatter, False)
            if not valid[0]:
                raise ValueError(f"it is not as {self._formatter!r}")
            since = datetime.timedelta(int(days[0]), microseconds=int(since_midnight[0]) // 1000)
            return datetime.datetime(1970, 1, 1) + since
        except ValueError as error:
            remedy = "set 'partition.time-extractor.timestamp-pattern' and '.timestamp-formatter'"
            raise ValueError(f"the partition's time {text!r} is not a time ({error}); {remedy}") from error
