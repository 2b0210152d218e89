"""Buckets of a file sink: the sub-folder a record is written to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo

from rayflink.common.records.batches import Batch
from rayflink.user_types import UserRecord


@dataclass(frozen=True)
class BucketContext:
    """The information about a record that a bucket assigner gets in addition to the record.

    Args:
        now_ms: processing time, epoch milliseconds.
        timestamp: of the record, epoch milliseconds; None: it has none.
    """

    now_ms: int
    timestamp: int | None = None


class BucketAssigner:
    """A function from a record to its bucket; subclass it with `get_bucket_id`.

    >>> class ByCountry(BucketAssigner):
    ...     def get_bucket_id(self, element, context):
    ...         return f"country={element[0]}"
    """

    def get_bucket_id(self, element: UserRecord, context: BucketContext) -> str:
        """Return the bucket: a path below the sink's folder; empty: the folder itself."""
        raise NotImplementedError(f"{type(self).__name__}.get_bucket_id")

    def bucket_of_all(self, now_ms: int) -> str | None:
        """Return the bucket of everything written now; None where that depends on the record."""
        return None

    def divided(self, batch: Batch, now_ms: int) -> Iterable[tuple[str, Batch]] | None:
        """Return the buckets of a batch with the records written into each; None where `get_bucket_id` decides for each
        record.
        """
        return None

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Return an assigner that writes everything to the sink's folder itself."""
        return _BasePath()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """Return an assigner with a bucket for each span of processing time, as in Java's DateTimeFormatter: y, M, d,
        H, h, m, s, S, a, E, D.

        >>> BucketAssigner.date_time_bucket_assigner("yyyy/MM/dd", "UTC").bucket_of_all(0)
        '1970/01/01'

        Args:
            timezone_id: as "Europe/Berlin" or "GMT-08:00"; None: the machine's.

        Raises:
            ValueError: a letter of the format, or the time zone, is unknown.
        """
        return _DateTime(format_str, timezone_id)


class _BasePath(BucketAssigner):
    def bucket_of_all(self, now_ms: int) -> str:
        return ""


class _DateTime(BucketAssigner):
    def __init__(self, format_str: str, timezone_id: str | None) -> None:
        self._pattern = pattern_of(format_str)
        self._zone_id = timezone_id
        self._zone = zone_of(timezone_id)

    def bucket_of_all(self, now_ms: int) -> str:
        now = datetime.fromtimestamp(now_ms // 1000, timezone.utc).astimezone(self._zone)
        now += timedelta(milliseconds=now_ms % 1000)
        return "".join(part if isinstance(part, str) else _shown(now, *part) for part in self._pattern)


def pattern_of(format_str: str) -> Sequence[str | tuple[str, int]]:
    """Return a format as strings and (letter, repetitions).

    Raises:
        ValueError: a letter has no meaning here.
    """
    parts: list[str | tuple[str, int]] = []
    for match in re.finditer(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+|'", format_str):
        text = match[0]
        if text[0] == "'":
            parts.append(text[1:-1].replace("''", "'") if text != "''" else "'")
        elif match[1] is None:
            parts.append(text)
        elif text[0] not in _LETTERS:
            remedy = f"use {', '.join(_LETTERS)}, and quotes around text: yyyy'T'HH"
            raise ValueError(f"letter {text[0]!r} in the date format {format_str!r} is not known; {remedy}")
        else:
            parts.append((text[0], len(text)))
    return parts


_LETTERS = {
    "y": "%Y", "u": "%Y", "M": "%m", "d": "%d", "H": "%H", "h": "%I", "m": "%M", "s": "%S", "S": "%f", "a": "%p",
    "E": "%a", "D": "%j",
}  # fmt: skip


def _shown(moment: datetime, letter: str, times: int) -> str:
    text = moment.strftime(_LETTERS[letter])
    if letter in "yu":
        return text[-2:] if times == 2 else text.zfill(times)
    if letter == "S":
        return text.ljust(9, "0")[:times]
    if letter == "M" and times >= 3:
        return moment.strftime("%b" if times == 3 else "%B")
    if letter == "E":
        return moment.strftime("%A") if times > 3 else text
    return text if letter == "a" else text.lstrip("0").rjust(times, "0") if times != 2 else text


def zone_of(timezone_id: str | None) -> tzinfo | None:
    """Return the time zone with a name; None stands for that of the machine.

    Raises:
        ValueError: it is unknown.
    """
    if timezone_id is None:
        return None
    offset = re.fullmatch(r"(?:GMT|UTC|UT)?([+-])(\d{1,2}):?(\d{2})?", timezone_id)
    if offset:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(timezone_id)
    except (KeyError, ValueError, OSError) as error:
        remedy = 'use a name as "Europe/Berlin" or an offset as "GMT-08:00"'
        raise ValueError(f"time zone {timezone_id!r} is not known; {remedy}") from error
