"""Raw state: bytes that user code writes at a snapshot and gets back unchanged.

Raw operator state is a row of partitions, redistributed like the entries of a split list; raw keyed state is one
stream of bytes for each key group that the subtask owns.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping

from .errors import StateError


class RawStateError(StateError):
    """Raised when raw state is written in a way that is not possible.

    Args:
        problem: what was found.
        remedy: what to do.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class RawOperatorStateOutput:
    """The output to which a snapshot's raw operator state is written.

    >>> out = RawOperatorStateOutput()
    >>> out.write(b"one ")
    >>> out.write(b"part")
    >>> out.start_new_partition()
    >>> out.write(b"two")
    >>> out.partitions()
    (b'one part', b'two')

    Source: apache/flink OperatorStateCheckpointOutputStream.
    """

    def __init__(self) -> None:
        self._partitions: list[bytearray] = []

    def start_new_partition(self) -> None:
        """Start a partition: what is written from now on may go to another subtask than what was written before."""
        self._partitions.append(bytearray())

    def write(self, data: bytes) -> None:
        """Append bytes to the partition; the first bytes of all begin one by themselves.

        Raises:
            RawStateError: these are no bytes.
        """
        chunk = _bytes(data)
        if not self._partitions:
            self.start_new_partition()
        self._partitions[-1] += chunk

    def partitions(self) -> tuple[bytes, ...]:
        """Return what was written, in order."""
        return tuple(map(bytes, self._partitions))


class RawKeyedStateOutput:
    """The output to which a snapshot's raw keyed state is written, one key group after the other.

    Args:
        key_groups: those that the subtask owns.

    Source: apache/flink KeyedStateCheckpointOutputStream.
    """

    def __init__(self, key_groups: range) -> None:
        self._key_groups = key_groups
        self._written: dict[int, bytearray] = {}
        self._current: bytearray | None = None

    def get_key_group_list(self) -> range:
        """Return the key groups that may be written."""
        return self._key_groups

    def start_new_key_group(self, key_group_id: int) -> None:
        """Start a key group: what is written from now on belongs to it.

        Raises:
            RawStateError: the subtask does not own it, or it was begun before.
        """
        if key_group_id not in self._key_groups:
            owned = f"{self._key_groups.start} to {self._key_groups.stop - 1}"
            remedy = "write those of get_key_group_list() only"
            raise RawStateError(f"key group {key_group_id} was begun, this subtask owns {owned}", remedy)
        if key_group_id in self._written:
            raise RawStateError(f"key group {key_group_id} was begun twice", "write all its bytes in one go")
        self._written[key_group_id] = self._current = bytearray()

    def write(self, data: bytes) -> None:
        """Append bytes to the key group.

        Raises:
            RawStateError: no key group was begun, or these are no bytes.
        """
        if self._current is None:
            raise RawStateError("bytes were written outside a key group", "call start_new_key_group(id) first")
        self._current += _bytes(data)

    def key_groups(self) -> dict[int, bytes]:
        """Return what was written: key group -> its bytes."""
        return {group: bytes(written) for group, written in self._written.items()}


def raw_inputs(partitions: Iterable[bytes]) -> Iterator[io.BytesIO]:
    """Return a stream for each partition of raw operator state."""
    return map(io.BytesIO, partitions)


def raw_keyed_inputs(parts: Iterable[Mapping[int, bytes]], key_groups: range) -> Iterator[tuple[int, io.BytesIO]]:
    """Yield (key group, a stream of its raw keyed state) of the owned key groups, in order."""
    owned = {group: data for part in parts for group, data in part.items() if group in key_groups}
    return ((group, io.BytesIO(owned[group])) for group in sorted(owned))


def _bytes(data: object) -> bytes | bytearray | memoryview:
    if not isinstance(data, bytes | bytearray | memoryview):
        problem = f"raw state was given {type(data).__name__} {data!r:.60}"
        raise RawStateError(problem, "write bytes, such as pickle.dumps(value)")
    return data
