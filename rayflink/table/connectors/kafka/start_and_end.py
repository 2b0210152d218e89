"""The options that say at which offsets the reading of a table in Kafka starts and ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...errors import SqlError
from ..contract import Option, OptionValues
from ..option_values import one_of, whole_from

EARLIEST, LATEST, GROUP = "earliest-offset", "latest-offset", "group-offsets"
TIMESTAMP, SPECIFIC, UNBOUNDED = "timestamp", "specific-offsets", "unbounded"

_OFFSET = re.compile(r"partition:(\d+),offset:(\d+)")


def specific_offsets(text: str) -> tuple[tuple[int, int], ...]:
    """Return partitions and their offsets.

    >>> specific_offsets("partition:0,offset:42;partition:1,offset:300")
    ((0, 42), (1, 300))

    Raises:
        ValueError: they are written in another form, or a partition has two offsets.
    """
    offsets = []
    for part in text.strip().rstrip(";").split(";"):
        match = _OFFSET.fullmatch(re.sub(r"\s", "", part))
        if match is None:
            raise ValueError("offsets of partitions, such as 'partition:0,offset:42;partition:1,offset:300'")
        offsets.append((int(match[1]), int(match[2])))
    if len(dict(offsets)) < len(offsets):
        raise ValueError("one offset for each partition")
    return tuple(offsets)


START_OPTIONS: Final[Mapping[str, Option]] = {
    "scan.startup.mode": Option(one_of(EARLIEST, LATEST, GROUP, TIMESTAMP, SPECIFIC), GROUP),
    "scan.startup.specific-offsets": Option(specific_offsets),
    "scan.startup.timestamp-millis": Option(whole_from(0)),
}
END_OPTIONS: Final[Mapping[str, Option]] = {
    "scan.bounded.mode": Option(one_of(UNBOUNDED, LATEST, GROUP, TIMESTAMP, SPECIFIC), UNBOUNDED),
    "scan.bounded.specific-offsets": Option(specific_offsets),
    "scan.bounded.timestamp-millis": Option(whole_from(0)),
}


@dataclass(frozen=True)
class Offsets:
    """The offsets at which reading starts or ends.

    Args:
        mode: the value of `scan.startup.mode` or `scan.bounded.mode`.
        timestamp_ms: of the mode `timestamp`: the first message of this time or later, in epoch milliseconds.
        specific: of the mode `specific-offsets`: partitions and offsets.
    """

    mode: str
    timestamp_ms: int | None = None
    specific: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        if self.mode == TIMESTAMP:
            return f"timestamp {self.timestamp_ms}"
        if self.mode == SPECIFIC:
            return f"offsets {', '.join(f'{partition}: {offset}' for partition, offset in self.specific)}"
        return self.mode


def start_offsets(table: str, options: OptionValues) -> Offsets:
    """Return the offsets at which a table's reading starts; see `end_offsets`."""
    return _offsets(table, options, "scan.startup")


def end_offsets(table: str, options: OptionValues) -> Offsets | None:
    """Return the offsets at which a table's reading ends; None: it has no end.

    Args:
        table: full name, for errors.
        options: of the connector, parsed.

    Raises:
        SqlError: the mode and the other options do not go together.
    """
    offsets = _offsets(table, options, "scan.bounded")
    return None if offsets.mode == UNBOUNDED else offsets


def _offsets(table: str, options: OptionValues, prefix: str) -> Offsets:
    mode = options[f"{prefix}.mode"]
    needs = {SPECIFIC: f"{prefix}.specific-offsets", TIMESTAMP: f"{prefix}.timestamp-millis"}
    for needed_by, key in needs.items():
        if mode == needed_by and options[key] is None:
            raise SqlError(f"{table} has '{prefix}.mode' = {mode!r} and no option {key!r}", f"the mode needs {key!r}")
        if mode != needed_by and options[key] is not None:
            remedy = f"write '{prefix}.mode' = {needed_by!r}, or leave the option out"
            raise SqlError(f"{table} has {key!r}, and '{prefix}.mode' is {mode!r}", remedy)
    if mode == SPECIFIC and (options.get("topic-pattern") is not None or len(options["topic"]) != 1):
        problem = f"{table} has '{prefix}.mode' = 'specific-offsets' and several topics"
        raise SqlError(problem, "specific offsets are those of one 'topic'; make a table for each")
    return Offsets(mode, options[needs[TIMESTAMP]], options[needs[SPECIFIC]] or ())


__all__ = [
    "EARLIEST",
    "END_OPTIONS",
    "GROUP",
    "LATEST",
    "SPECIFIC",
    "START_OPTIONS",
    "TIMESTAMP",
    "UNBOUNDED",
    "Offsets",
    "end_offsets",
    "specific_offsets",
    "start_offsets",
]
