"""The metadata columns of tables in Kafka: what a message has beside its key and value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...errors import SqlError, nearest
from ...plan.logical import Attribute
from ...types import DataType, Root
from ..contract import Connected
from ..messages.contract import MessageFormat

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Metadata:
    """A kind of metadata.

    Args:
        type: of its values, as SQL writes it.
        roots: the types that its column may have.
        is_writable: True if INSERT can set it.
    """

    type: str
    roots: tuple[Root, ...]
    is_writable: bool = False


METADATA: Final[Mapping[str, Metadata]] = {
    "topic": Metadata("STRING NOT NULL", (Root.VARCHAR, Root.CHAR), True),
    "partition": Metadata("INT NOT NULL", (Root.INT, Root.BIGINT)),
    "headers": Metadata("MAP<STRING, BYTES> NOT NULL", (Root.MAP,), True),
    "leader-epoch": Metadata("INT", (Root.INT, Root.BIGINT)),
    "offset": Metadata("BIGINT NOT NULL", (Root.BIGINT,)),
    "timestamp": Metadata("TIMESTAMP_LTZ(3) NOT NULL", (Root.TIMESTAMP_LTZ, Root.TIMESTAMP), True),
    "timestamp-type": Metadata("STRING NOT NULL", (Root.VARCHAR, Root.CHAR)),
}
"""Key of a metadata column -> its kind."""
VALUE_PREFIX: Final = "value."
"""Before the metadata keys of the value's format."""


def readable_keys(value_format: MessageFormat) -> frozenset[str]:
    """Return the metadata that can be read from messages with values of a format."""
    return frozenset(METADATA) | {VALUE_PREFIX + key for key in value_format.metadata}


def check_metadata(table: Connected, reads: bool) -> None:
    """Check the types of metadata columns, and for writing whether they can be set.

    Raises:
        SqlError: a column has a type that does not fit, or cannot be written.
    """
    for index, key in table.metadata.items():
        column = table.schema[index]
        known = METADATA.get(key)
        if not reads and (known is None or not known.is_writable):
            writable = ", ".join(key for key, metadata in METADATA.items() if metadata.is_writable)
            problem = f"{table.table} has the metadata column {column.name!r} ({key!r}), which cannot be written"
            raise SqlError(problem, f"declare it {column.name} ... METADATA VIRTUAL; {writable} can be written")
        if known is not None and not _fits(column.type, known):
            problem = f"{table.table} has the metadata {key!r} as column {column.name!r} of type {column.type}"
            raise SqlError(problem, f"declare the column as {known.type}")


def _fits(kind: DataType, known: Metadata) -> bool:
    if kind.root not in known.roots:
        return False
    return kind.root is not Root.MAP or (kind.items[0].is_text and kind.items[1].is_bytes)


def unknown_metadata(key: str, known: frozenset[str], table: str) -> SqlError:
    """Return the error for metadata that messages do not have."""
    problem = f"{table} has a METADATA column {key!r}, which its messages do not have{nearest(key, known)}"
    return SqlError(problem, f"the metadata are {', '.join(sorted(known))}")


def times_column(millis: Sequence[int | None], column: Attribute, zone: str) -> pyarrow.Array:
    """Return epoch milliseconds as a column of timestamps.

    Args:
        millis: None becomes NULL.
        column: a TIMESTAMP is the time of day in `zone`.
    """
    import pyarrow
    from pyarrow import compute

    instants = pyarrow.array(millis, pyarrow.int64()).cast(pyarrow.timestamp("ms", "UTC"))
    if column.type.root is Root.TIMESTAMP:
        instants = compute.local_timestamp(instants.cast(pyarrow.timestamp("ms", zone)))
    return instants.cast(column.type.to_arrow())


def epoch_millis(column: pyarrow.Array, zone: str) -> list[int | None]:
    """Return a column of timestamps as epoch milliseconds; see `times_column`."""
    import pyarrow
    from pyarrow import compute

    if column.type.tz is None:
        column = compute.assume_timezone(column, zone, ambiguous="earliest", nonexistent="latest")
    millis = compute.floor_temporal(column, unit="millisecond").cast(pyarrow.timestamp("ms", "UTC"), safe=False)
    times_ms: list[int | None] = millis.cast(pyarrow.int64()).to_pylist()
    return times_ms


def headers_column(headers: Sequence[Sequence[tuple[str, bytes | None]] | None], column: Attribute) -> pyarrow.Array:
    """Return the headers of messages as a column of maps; of several headers with one name the last one counts."""
    import pyarrow

    rows = [list(dict(each).items()) if each else [] for each in headers]
    return pyarrow.array(rows, column.type.to_arrow())


__all__ = [
    "METADATA",
    "VALUE_PREFIX",
    "Metadata",
    "check_metadata",
    "epoch_millis",
    "headers_column",
    "readable_keys",
    "times_column",
    "unknown_metadata",
]
