"""Questions to brokers about partitions and offsets; each blocks, so enumerators ask them beside their decisions."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rayflink.common.text_output.logs import get_logger
from rayflink.user_types import UserValue

from .kafka_client import (
    MISSING,
    ClientErrors,
    KafkaBrokerUnavailable,
    KafkaClientError,
    admin_library,
    as_exception,
    error_name,
    is_transient,
    library,
    new_admin,
    new_consumer,
    place_of,
)
from .kafka_offsets import KafkaOffsetsInitializer, Offsets
from .kafka_settings import API_TIMEOUT, KafkaSourceSettings
from .kafka_splits import FoundPartitions, KafkaPartitionSplit, KafkaTopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError
    from confluent_kafka.admin import AdminClient

_T = TypeVar("_T")
log = get_logger(__name__)
_INTERNAL = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
_TIMED_OUT = -185
"""The client's code of requests without an answer."""
_TRY_S = 2.0
"""Seconds for one try; a client that knows no broker does not answer earlier."""


class Lookup:
    """One client that asks; it is used for one search or one resolution, by one thread.

    Args:
        stopped: set when the answer is not wanted any more.
    """

    def __init__(
        self, settings: KafkaSourceSettings, consumer: Consumer, errors: ClientErrors, stopped: threading.Event
    ) -> None:
        self._settings, self._consumer, self._errors, self._stopped = settings, consumer, errors, stopped
        self._admin: AdminClient | None = None
        self._deadline = time.monotonic() + settings.api_timeout_ms / 1000

    def beginnings(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return the offsets of the first records that brokers still have."""
        return self._offsets(partitions, admin_library().OffsetSpec.earliest())

    def ends(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return the offsets behind the last records that the source may read."""
        return self._offsets(partitions, admin_library().OffsetSpec.latest())

    def at_time(self, partitions: Collection[KafkaTopicPartition], timestamp_ms: int) -> Offsets:
        """Return the offsets of the first records at or after a time; partitions without such a record are left out."""
        offsets = self._offsets(partitions, admin_library().OffsetSpec.for_timestamp(timestamp_ms))
        return {partition: offset for partition, offset in offsets.items() if offset >= 0}

    def committed(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return what the group has committed; partitions without are left out.

        Raises:
            KafkaClientError: there is no group.
        """
        if not self._settings.has_group:
            raise KafkaClientError("committed offsets are wanted, and there is no group id", "set property group.id")
        asked = [library().TopicPartition(each.topic, each.partition) for each in partitions]
        answers = self._repeated(
            "reading committed offsets", lambda timeout: self._consumer.committed(asked, timeout=timeout)
        )
        return {KafkaTopicPartition(each.topic, each.partition): each.offset for each in answers if each.offset >= 0}

    def partitions(self) -> frozenset[KafkaTopicPartition]:
        """Return the partitions that the source is to read.

        Raises:
            KafkaClientError: a topic or a partition that is named does not exist.
        """
        selection = self._settings.selection
        if selection.pattern is not None:
            matches = re.compile(selection.pattern).fullmatch
            topics = self._repeated(
                "listing topics", lambda timeout: self._consumer.list_topics(timeout=timeout)
            ).topics
            names = [name for name in topics if name not in _INTERNAL and matches(name)]
            return frozenset(KafkaTopicPartition(name, number) for name in names for number in topics[name].partitions)
        names = list(selection.topics) or sorted({each.topic for each in selection.partitions})
        partitions = frozenset(KafkaTopicPartition(name, number) for name in names for number in self._numbers(name))
        if not selection.partitions:
            return partitions
        missing = selection.partitions - partitions
        if missing:
            wanted = ", ".join(map(str, sorted(missing)))
            raise KafkaClientError(f"there is no partition {wanted}", "correct set_partitions() or add it to the topic")
        return selection.partitions

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """Return the ids that topics got when they were created; {} where brokers do not say."""
        if not topics:
            return {}
        module, admin = library(), self._admin_client()
        names = module.TopicCollection(sorted(topics))
        try:
            answers = admin.describe_topics(names, request_timeout=_TRY_S)
            return {name: str(answer.result(_TRY_S + 1).topic_id) for name, answer in answers.items()}
        except (module.KafkaException, TimeoutError) as error:
            log.debug("no ids of topics: %s", error)  # the next search asks again
            return {}

    def _numbers(self, topic: str) -> list[int]:
        """Return the numbers of a topic's partitions."""
        doing = f"describing topic {topic!r}"

        def ask(timeout: float) -> list[int]:
            answer = self._consumer.list_topics(topic, timeout=timeout).topics[topic]
            if answer.error is not None:
                raise library().KafkaException(answer.error)
            return list(answer.partitions)

        return self._repeated(doing, ask)

    def _offsets(self, partitions: Collection[KafkaTopicPartition], spec: object) -> Offsets:
        module = library()
        isolation = self._settings.client.get("isolation.level", "read_committed").upper()
        admin = self._admin_client()

        def ask(timeout: float) -> Offsets:
            asked: UserValue = {module.TopicPartition(each.topic, each.partition): spec for each in partitions}
            futures = admin.list_offsets(
                asked, isolation_level=module.IsolationLevel[isolation], request_timeout=timeout
            )
            return {
                KafkaTopicPartition(each.topic, each.partition): future.result(timeout + 1).offset
                for each, future in futures.items()
            }

        return self._repeated("looking offsets up", ask)

    def _admin_client(self) -> AdminClient:
        if self._admin is None:
            self._admin = new_admin(self._settings.client_of("offsets"), self._errors)
        return self._admin

    def _repeated(self, doing: str, ask: Callable[[float], _T]) -> _T:
        """Return the answer, asked for again while brokers are down, until the deadline.

        Raises:
            KafkaClientError: there is none.
        """
        module = library()
        while True:
            try:
                return ask(max(0.1, min(_TRY_S, self._deadline - time.monotonic())))
            except (module.KafkaException, TimeoutError) as error:
                first = error.args[0] if error.args else None
                timed_out = module.KafkaError(_TIMED_OUT)
                failure = first if isinstance(first, module.KafkaError) else timed_out
            self._consumer.poll(0)  # which reports the errors of connections
            self._errors.check()
            if error_name(failure) in MISSING:
                raise self._missing(failure, doing)
            if not is_transient(failure):
                raise as_exception(failure, self._settings.client, doing)
            if self._stopped.is_set() or time.monotonic() >= self._deadline:
                raise self._unavailable(failure, doing)
            self._stopped.wait(0.1)

    def _missing(self, failure: KafkaError, doing: str) -> KafkaClientError:
        problem = f"{doing} at {place_of(self._settings.client)}: there is no such topic or partition"
        return KafkaClientError(problem, "create it, or correct the name; set_topic_pattern() waits for topics to come")

    def _unavailable(self, failure: KafkaError, doing: str) -> KafkaBrokerUnavailable:
        last = self._errors.last or failure.str()
        waited = f"for {self._settings.api_timeout_ms / 1000:g} s ({API_TIMEOUT})"
        problem = f"{doing}: no broker at {place_of(self._settings.client)} answered {waited}: {last}"
        return KafkaBrokerUnavailable(problem, "check set_bootstrap_servers() and that the brokers run")


class PartitionLookup:
    """The blocking work of an enumerator: it finds partitions, and resolves their offsets.

    Each call makes a client of its own and closes it, so it may run in any thread.
    """

    def __init__(self, settings: KafkaSourceSettings) -> None:
        self._settings = settings
        self._stopped = threading.Event()

    def find(self) -> FoundPartitions:
        """Return the partitions that the source is to read, and the ids of their topics.

        Raises:
            KafkaClientError: a topic is missing, or brokers do not answer in time.
        """
        with self._lookup() as lookup:
            partitions = lookup.partitions()
            return FoundPartitions(partitions, lookup.topic_ids({each.topic for each in partitions}))

    def resolve(
        self, partitions: frozenset[KafkaTopicPartition], starting: KafkaOffsetsInitializer
    ) -> list[KafkaPartitionSplit]:
        """Return splits with their offsets as numbers.

        Raises:
            KafkaClientError: a partition has no such offset, or brokers do not answer in time.
        """
        ordered = sorted(partitions)
        if not ordered:
            return []
        stopping = self._settings.stopping
        with self._lookup() as lookup:
            stops = {} if stopping is None else stopping.resolve(ordered, lookup, True)
            starts = starting.resolve(ordered, lookup, False)
        return [KafkaPartitionSplit(each.topic, each.partition, starts[each], stops.get(each)) for each in ordered]

    def stop(self) -> None:
        """End calls that wait for brokers."""
        self._stopped.set()

    @contextmanager
    def _lookup(self) -> Iterator[Lookup]:
        client = self._settings.client_of("enumerator")
        errors = ClientErrors(client)
        consumer = new_consumer(client, errors)
        try:
            yield Lookup(self._settings, consumer, errors, self._stopped)
        finally:
            consumer.close()


__all__ = ["Lookup", "PartitionLookup"]
