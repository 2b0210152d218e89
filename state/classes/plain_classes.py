"""The allow-list of classes that a snapshot of unknown origin may name: classes that only hold values.

A pickle names what it calls, and calls it with what it likes, so each name is listed by itself: a module such as
`builtins` or `numpy` as a whole would let it run code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .moved_modules import current_class

_NAMES = {
    "builtins": "bool bytearray bytes complex dict float frozenset int list object range set slice str tuple",
    "collections": "Counter OrderedDict defaultdict deque",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "ipaddress": "IPv4Address IPv4Interface IPv4Network IPv6Address IPv6Interface IPv6Network",
    "uuid": "SafeUUID UUID",
    "zoneinfo": "ZoneInfo ZoneInfo._unpickle",
    "numpy": "dtype ndarray",
    "numpy._core.multiarray": "_reconstruct scalar",
    "numpy._core.numeric": "_frombuffer",
    "numpy.core.multiarray": "_reconstruct scalar",
    "numpy.core.numeric": "_frombuffer",
    "rayflink.cep.nfa.partial_matches": "read_rows",
    "rayflink.cep.runtime.pattern_runs": "MatchesByPattern",
    "rayflink.common.records.batches": "EndOfSuperstep LatencyMarker RowBatch Watermark WatermarkStatus",
    "rayflink.common.time": "Duration Instant",
    "rayflink.common.types": "Row RowKind _create_row",
    "rayflink.connectors.frames.cached": "CacheSplit",
    "rayflink.connectors.collection": "CollectionSplit",
    "rayflink.connectors.files.file_blocks": "FileSplit",
    "rayflink.connectors.files.file_enumeration": "FileEnumeratorState",
    "rayflink.connectors.frames.frame_writing": "WrittenPart",
    "rayflink.connectors.frames.frame_source": "FramePart FrameSplit",
    "rayflink.connectors.generator": "NumberSplit",
    "rayflink.connectors.hybrid_source": "HybridSplit",
    "rayflink.connectors.iteration": "IterationSplit",
    "rayflink.connectors.files.part_files": "PendingFile",
    "rayflink.connectors.socket_text": "SocketSplit",
    "rayflink.operators.windows.window": "CountWindow GlobalWindow TimeWindow",
    "rayflink.state.backend": "NO_KEY",
    "rayflink.state.keys.key_forms": "FIELD_NAN",
    "rayflink.state.keys.list_key": "ListKey",
    "rayflink.state.rocksdb.row_layout": "Kept",
}
PLAIN_CLASSES = frozenset(f"{module}:{name}" for module, names in _NAMES.items() for name in names.split())
"""Names of the form `module:qualname`."""

_refused: list[set[str]] = []
"""The classes of each open block `only_plain_classes`, in all threads."""


@contextmanager
def only_plain_classes() -> Iterator[set[str]]:
    """Allow snapshots to import and call only plain classes, in this whole process, within the `with` block.

    Returns: the names of other classes that snapshots have asked for so far, as `module:qualname`.

    >>> with only_plain_classes() as refused:
    ...     admits("os:system"), admits("decimal:Decimal"), refused
    (False, True, {'os:system'})
    >>> admits("os:system")
    True
    """
    refused: set[str] = set()
    _refused.append(refused)
    try:
        yield refused
    finally:
        _refused.remove(refused)


def admits(class_of: str) -> bool:
    """Return whether the class `module:qualname` may be imported for a snapshot."""
    if not _refused or current_class(class_of) in PLAIN_CLASSES:
        return True
    for names in _refused:
        names.add(class_of)
    return False


__all__ = ["PLAIN_CLASSES", "admits", "only_plain_classes"]
