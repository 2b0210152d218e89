"""Positions in the binary log as numbers, what they need beside, and the mark of a snapshot."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from rayflink.connectors.cdc.chunks import SnapshotMark

_OFFSET_BITS = 36
_UUID = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?::([a-z_][a-z0-9_]*))?")


def position_in(file: str, offset: int) -> int:
    """Return a place in the log as a number that grows with the log.

    >>> file_and_offset(position_in("binlog.000012", 345), "binlog")
    ('binlog.000012', 345)

    Raises:
        ValueError: the file has no number.
    """
    number = file.rpartition(".")[2]
    if not number.isdigit():
        raise ValueError(f"{file!r} is no file of the log; expected a name such as 'binlog.000001'")
    return int(number) << _OFFSET_BITS | offset


def file_and_offset(position: int, base: str) -> tuple[str, int]:
    """Return the file and the offset of a position.

    Args:
        base: the name of the files without their numbers.
    """
    return f"{base}.{position >> _OFFSET_BITS:06d}", position & ((1 << _OFFSET_BITS) - 1)


@dataclass(frozen=True)
class PositionMark(SnapshotMark):
    """The position in the log that a snapshot is of: it shows what was committed before, and nothing else."""

    position: int

    @property
    def high(self) -> int:
        return self.position

    def contains(self, transaction: int) -> bool:
        return transaction < self.position


@dataclass(frozen=True)
class LogToken:
    """A position's companion: the server and the transactions that are needed to read on, also elsewhere.

    Args:
        server: what no other server has.
        base: name of the files of its log, without their numbers.
        gtids: the transactions before the position; "": the server has no GTIDs.
        partial: the GTID of the transaction that was emitted in part; "": none was, or it has none.
    """

    server: str = ""
    base: str = ""
    gtids: str = ""
    partial: str = ""

    def encode(self) -> str:
        """Return the token as a string."""
        return json.dumps(asdict(self))

    @staticmethod
    def decode(token: str) -> LogToken:
        """Return the token that a string contains; "" contains none."""
        return LogToken(**json.loads(token)) if token else LogToken()


class GtidSet:
    """A set of GTIDs, of MySQL (`uuid:1-5:7`) or of MariaDB (`0-1-100`, the last one of each domain).

    >>> seen = GtidSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7")
    >>> seen.add("3e11fa47-71ca-11e1-9e33-c80aa9429562:6")
    >>> str(seen)
    '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7'
    >>> seen = GtidSet("0-1-100,1-1-7")
    >>> seen.add("0-2-101")
    >>> str(seen)
    '0-2-101,1-1-7'

    Raises:
        ValueError: it is no such set.
    """

    def __init__(self, gtids: str) -> None:
        self._intervals: dict[str, list[tuple[int, int]]] = {}
        self._last: dict[int, str] = {}
        for part in filter(None, re.split(r"[,\s]+", gtids)):
            if re.fullmatch(r"\d+-\d+-\d+", part):
                self._last[int(part.partition("-")[0])] = part
            else:
                self._add_intervals(part)
        if self._last and self._intervals:
            raise ValueError(f"{gtids!r} has GTIDs of both MySQL and MariaDB")

    def __str__(self) -> str:
        if self._last:
            return ",".join(self._last[domain] for domain in sorted(self._last))
        return ",".join(f"{source}:{_shown(intervals)}" for source, intervals in sorted(self._intervals.items()))

    def add(self, gtid: str) -> None:
        """Add one GTID."""
        if re.fullmatch(r"\d+-\d+-\d+", gtid):
            self._last[int(gtid.partition("-")[0])] = gtid
        else:
            self._add_intervals(gtid)

    def _add_intervals(self, part: str) -> None:
        matched = _UUID.match(part)
        rest = "" if matched is None else part[matched.end() :]
        if matched is None or not re.fullmatch(r"(:\d+(-\d+)?)+", rest):
            raise ValueError(f"{part!r} is no GTID; expected 'uuid:1-5' of MySQL or '0-1-100' of MariaDB")
        tag = f":{matched[2]}" if matched[2] else ""
        intervals = self._intervals.setdefault(matched[1].lower() + tag, [])
        for interval in rest[1:].split(":"):
            first, _, last = interval.partition("-")
            _insert(intervals, int(first), int(last or first))


def _insert(intervals: list[tuple[int, int]], first: int, last: int) -> None:
    """Add an interval to ordered ones that do not touch; one at the end is added in constant time."""
    if intervals and intervals[-1][0] <= first <= intervals[-1][1] + 1:
        intervals[-1] = (intervals[-1][0], max(last, intervals[-1][1]))
        return
    merged: list[tuple[int, int]] = []
    for start, stop in sorted([*intervals, (first, last)]):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    intervals[:] = merged


def _shown(intervals: list[tuple[int, int]]) -> str:
    return ":".join(str(start) if start == stop else f"{start}-{stop}" for start, stop in intervals)


__all__ = ["GtidSet", "LogToken", "PositionMark", "file_and_offset", "position_in"]
