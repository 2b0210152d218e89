"""The settings of a Kafka source, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .kafka_client import KafkaPropertyError, consumer_properties, shown_properties
from .kafka_offsets import KafkaOffsetsInitializer
from .kafka_splits import KafkaTopicPartition

DISCOVERY_INTERVAL = "partition.discovery.interval.ms"
COMMIT_ON_CHECKPOINT = "commit.offsets.on.checkpoint"
CLIENT_ID_PREFIX = "client.id.prefix"
API_TIMEOUT = "default.api.timeout.ms"
OUTAGE_TIMEOUT = "broker.outage.timeout.ms"
OWN = (DISCOVERY_INTERVAL, COMMIT_ON_CHECKPOINT, CLIENT_ID_PREFIX, API_TIMEOUT, OUTAGE_TIMEOUT)
"""The properties of the source itself; all others are the client's."""

_DEFAULTS = {"fetch.queue.backoff.ms": "10"}
"""Properties for programs that do not set them.

A client that has `queued.min.messages` at hand waits so long before it fetches more: a second, in which a fast reader
has nothing to read.
"""
_ALWAYS = {"enable.auto.commit": "false", "enable.auto.offset.store": "false", "auto.offset.reset": "error"}
_RESETS = {
    "earliest": "earliest", "beginning": "earliest", "smallest": "earliest",
    "latest": "latest", "end": "latest", "largest": "latest", "error": "error",
}  # fmt: skip


@dataclass(frozen=True)
class TopicSelection:
    """The partitions to read: those of topics, of all topics whose name matches, or single ones; one of the three.

    Args:
        pattern: a regular expression that matches the whole name.
    """

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: frozenset[KafkaTopicPartition] = frozenset()

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"topics that match {self.pattern!r}"
        names = self.topics or sorted(map(str, self.partitions))
        return ("topics " if self.topics else "partitions ") + ", ".join(names)


@dataclass(frozen=True)
class KafkaSourceSettings:
    """All settings of a source but its schema.

    Args:
        client: properties of librdkafka.
        stopping: None: partitions have no end.
        is_bounded: whether the source counts as bounded.
        discovery_ms: the pause between two searches for new partitions, in milliseconds; None: there is one search.
        commits: whether offsets are committed with checkpoints.
        reset: "error", "earliest" or "latest": what to do where an offset does not exist any more.
        api_timeout_ms: the time in which brokers must answer at the start, in milliseconds.
        outage_timeout_ms: the time for which a reader waits for brokers to come back, in milliseconds.
    """

    client: Mapping[str, str]
    selection: TopicSelection
    starting: KafkaOffsetsInitializer
    stopping: KafkaOffsetsInitializer | None = None
    is_bounded: bool = False
    discovery_ms: int | None = 300_000
    commits: bool = True
    client_id_prefix: str = ""
    reset: str = "error"
    api_timeout_ms: int = 60_000
    outage_timeout_ms: int = 300_000
    has_group: bool = field(default=True)

    def client_of(self, name: str) -> dict[str, str]:
        """Return the properties of one client, whose id has `name` at its end."""
        prefix = self.client_id_prefix or self.client.get("client.id") or self.client.get("group.id", "rayflink")
        return {"group.id": "rayflink", **self.client, "client.id": f"{prefix}-{name}"}

    def __repr__(self) -> str:
        return f"KafkaSourceSettings({self.selection}, {shown_properties(self.client)})"


def settings_of(
    properties: Mapping[str, object],
    selection: TopicSelection,
    starting: KafkaOffsetsInitializer,
    stopping: KafkaOffsetsInitializer | None,
    is_bounded: bool,
) -> KafkaSourceSettings:
    """Return the settings that properties of the client and of the source amount to.

    Raises:
        KafkaPropertyError: one is unknown, or has a value that it cannot take.
    """
    own = {name: str(properties[name]) for name in OWN if name in properties}
    client = consumer_properties({name: value for name, value in properties.items() if name not in OWN}, OWN)
    if not client.get("bootstrap.servers"):
        raise KafkaPropertyError("no brokers are named", "call set_bootstrap_servers('host:9092')")
    if client.get("enable.auto.commit", "false").lower() != "false":
        remedy = "remove it: with a group id, offsets are committed when checkpoints complete"
        raise KafkaPropertyError("enable.auto.commit is set", remedy)
    reset = _RESETS[client.get("auto.offset.reset", "error")]
    commits = _boolean(own, COMMIT_ON_CHECKPOINT, True) and "group.id" in client
    discovery = _number(own, DISCOVERY_INTERVAL, 0 if stopping is not None else 300_000, least=-1)
    if "client.id" not in client and CLIENT_ID_PREFIX not in own and "group.id" in client:
        own[CLIENT_ID_PREFIX] = client["group.id"]
    return KafkaSourceSettings(
        {**_DEFAULTS, **client, **_ALWAYS},
        selection,
        starting,
        stopping,
        is_bounded,
        discovery if discovery > 0 and not is_bounded else None,
        commits,
        own.get(CLIENT_ID_PREFIX, ""),
        reset,
        _number(own, API_TIMEOUT, 60_000),
        _number(own, OUTAGE_TIMEOUT, 300_000),
        "group.id" in client,
    )


def _number(own: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    string = own.get(name, str(default))
    try:
        number = int(string)
    except ValueError:
        number = least - 1
    if number < least:
        raise KafkaPropertyError(f"{name} is {string!r}, a number of milliseconds from {least} is wanted", "correct it")
    return number


def _boolean(own: Mapping[str, str], name: str, default: bool) -> bool:
    string = own.get(name, str(default)).lower()
    if string not in ("true", "false"):
        raise KafkaPropertyError(f"{name} is {string!r}, true or false is wanted", "correct it")
    return string == "true"


__all__ = ["KafkaSourceSettings", "TopicSelection", "settings_of"]
