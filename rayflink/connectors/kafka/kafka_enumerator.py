"""The enumerator of a Kafka source: it finds partitions and gives each to one reader."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from zlib import crc32

from rayflink.common.connector_base.source import EnumeratorContext, SplitEnumerator
from rayflink.common.text_output.logs import get_logger

from .kafka_client import KafkaBrokerUnavailable
from .kafka_errors import KafkaTopicRecreated
from .kafka_lookup import PartitionLookup
from .kafka_offsets import KafkaOffsetsInitializer
from .kafka_settings import KafkaSourceSettings
from .kafka_splits import FoundPartitions, KafkaEnumeratorState, KafkaPartitionSplit, KafkaTopicPartition

log = get_logger(__name__)


def owner_of(topic: str, partition: int, parallelism: int) -> int:
    """Return the subtask that reads a partition; those of one topic go to subtasks in turn.

    >>> sorted(owner_of("orders", partition, 3) for partition in range(6))
    [0, 0, 1, 1, 2, 2]

    Source: apache/flink-connector-kafka KafkaSourceEnumerator.getSplitOwner, with another hash.
    """
    return (crc32(topic.encode()) + partition) % parallelism


class KafkaEnumerator(SplitEnumerator):
    """Finds partitions, whenever the job starts and each discovery interval, and assigns their splits.

    A reader asks once; from then on it is assigned splits whenever partitions are found. Offsets are resolved to
    numbers before a split is assigned.

    Args:
        ctx: the coordinator.
        state: what `snapshot_state` returned; the default: the job starts afresh.
    """

    def __init__(
        self, ctx: EnumeratorContext, settings: KafkaSourceSettings, state: KafkaEnumeratorState | None = None
    ) -> None:
        self._ctx, self._settings = ctx, settings
        self._lookup = PartitionLookup(settings)
        state = state or KafkaEnumeratorState()
        self._known, self._unassigned = set(state.known), list(state.unassigned)
        self._is_initialized, self._topic_ids = state.is_initialized, dict(state.topic_ids)
        self._in_resolution: set[KafkaTopicPartition] = set()
        self._readers: set[int] = set()

    def start(self) -> None:
        self._ctx.call_async(self._lookup.find, self._found, self._settings.discovery_ms)

    def _found(self, discovery: FoundPartitions | None, error: Exception | None) -> None:
        if discovery is None:
            self._failed("the search for new partitions", error)
            return
        self._check_ids(discovery)
        if self._is_initialized and self._settings.stopping is not None and self._settings.discovery_ms is None:
            return  # what is bounded ends where it was to end at its start
        partitions = discovery.partitions
        new = partitions - self._known - self._in_resolution
        if self._is_initialized and not new:
            return
        if not self._is_initialized and self._in_resolution:
            return  # the first search is not through yet
        if self._is_initialized:
            log.info("new partitions: %s", ", ".join(map(str, sorted(new))))
        elif not new:
            log.warning("there are no %s yet", self._settings.selection)
        self._in_resolution |= new
        starting = KafkaOffsetsInitializer.earliest() if self._is_initialized else self._settings.starting
        self._ctx.call_async(partial(self._lookup.resolve, new, starting), partial(self._resolved, new))

    def _check_ids(self, discovery: FoundPartitions) -> None:
        """Check that topics are those whose offsets are in the splits.

        Raises:
            KafkaTopicRecreated: one is another, and the program does not say where to go on.
        """
        for topic, topic_id in discovery.topic_ids.items():
            known = self._topic_ids.setdefault(topic, topic_id)
            if known == topic_id:
                continue
            problem = f"topic {topic!r} was deleted and created again since it was read last (its id was {known}, and "
            problem += f"is {topic_id}): the offsets of the job do not belong to it"
            if self._settings.reset == "error":
                remedy = "start the job without its checkpoint, or set auto.offset.reset to read on regardless"
                raise KafkaTopicRecreated(problem, remedy)
            log.warning("%s; it is read on, as auto.offset.reset is set", problem)
            self._topic_ids[topic] = topic_id

    def _resolved(
        self,
        partitions: frozenset[KafkaTopicPartition],
        splits: Sequence[KafkaPartitionSplit] | None,
        error: Exception | None,
    ) -> None:
        self._in_resolution -= partitions
        if splits is None:
            self._failed("looking up the offsets of new partitions", error)
            return
        self._known |= partitions
        self._is_initialized = True
        self._unassigned += [split for split in splits if not split.is_finished]
        self._assign(sorted(self._readers))

    def _failed(self, what: str, error: Exception | None) -> None:
        assert error is not None
        if not self._is_initialized or not isinstance(error, KafkaBrokerUnavailable):
            raise error
        log.warning("%s failed and is repeated: %s", what, error)
        if self._settings.discovery_ms is None:
            self._ctx.call_async(self._lookup.find, self._found)

    def handle_split_request(self, subtask: int) -> None:
        self._readers.add(subtask)
        self._assign([subtask])

    def _assign(self, readers: Sequence[int]) -> None:
        parallelism = self._ctx.current_parallelism()
        for reader in readers:
            mine = [each for each in self._unassigned if owner_of(each.topic, each.partition, parallelism) == reader]
            if mine:
                self._unassigned = [split for split in self._unassigned if split not in mine]
                self._ctx.assign_splits({reader: mine})
            if self._is_initialized and self._is_complete:
                self._ctx.signal_no_more_splits(reader)

    @property
    def _is_complete(self) -> bool:
        """Return whether no further partition will come, and each has an end."""
        return self._settings.stopping is not None and self._settings.discovery_ms is None

    def add_splits_back(self, splits: list[KafkaPartitionSplit], subtask: int) -> None:
        self._readers.discard(subtask)
        self._unassigned += splits

    def snapshot_state(self) -> KafkaEnumeratorState:
        known, unassigned = frozenset(self._known), tuple(self._unassigned)
        return KafkaEnumeratorState(known, unassigned, self._is_initialized, dict(self._topic_ids))

    def close(self) -> None:
        self._lookup.stop()


__all__ = ["KafkaEnumerator", "owner_of"]
