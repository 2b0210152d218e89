"""The source of MQTT, and its builder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.serialization import DeserializationSchema
from rayflink.common.text_output.logs import get_logger
from rayflink.common.time import Duration, to_millis
from rayflink.user_types import UserRecord

from ..message_queues.consumer_thread import BrokerConsumer
from ..message_queues.queue_reader import QueueReader, QueueReading
from ..message_queues.queue_source import QueueSplits
from .mqtt_broker import MqttBroker, MqttBrokerBuilder
from .mqtt_connection import MqttSession
from .mqtt_consumer import MqttConsumer, SessionHistory
from .mqtt_errors import MqttRefusal
from .mqtt_messages import MessageSchema, PayloadSchema, checked_filter

log = get_logger(__name__)

MOST_UNACKNOWLEDGED = 10_000
MOST_SESSIONS = 1_000
EXPIRY_S = 24 * 3600


@dataclass(frozen=True)
class MqttSourceSettings:
    """The settings of a source.

    Args:
        client_id: the beginning of the client ids of its sessions; a number follows.
        filters: of topics.
        group: of a shared subscription; "": it is not shared.
        sessions: number of sessions.
        schema: decodes messages.
        expiry_s: seconds for which the broker keeps a session that has no connection.
    """

    broker: MqttBroker
    client_id: str
    filters: tuple[str, ...]
    group: str = ""
    sessions: int = 1
    schema: DeserializationSchema = field(default_factory=MessageSchema)
    malformed: MalformedRecords = field(default_factory=MalformedRecords.fail)
    most_unacknowledged: int = MOST_UNACKNOWLEDGED
    expiry_s: int = EXPIRY_S

    @property
    def subscriptions(self) -> list[str]:
        """Return what each session subscribes."""
        return [f"$share/{self.group}/{name}" for name in self.filters] if self.group else list(self.filters)

    def reading(self) -> QueueReading:
        """Return the settings that all brokers share."""
        topics = ", ".join(self.filters)
        place = f"topics {topics!r} of MQTT at {self.broker.place}"
        limit = self.most_unacknowledged * self.sessions if self.broker.version == "5" else 0
        remedy = "raise set_max_unacknowledged(n) and the broker's limit (mosquitto: max_inflight_messages)"
        return QueueReading(
            self.client_id, place, limit, remedy, malformed=self.malformed,
            outage_timeout_ms=self.broker.outage_timeout_ms,
        )  # fmt: skip

    def session(self, number: int) -> MqttSession:
        """Return a session by its number."""
        return MqttSession(f"{self.client_id}-{number}", True, self.expiry_s, self.most_unacknowledged)


class MqttSource(Source[UserRecord]):
    """Receives messages of topics from a broker of MQTT, each at least once; `MqttSource.builder()` makes one.

    The broker keeps messages in sessions until they are acknowledged, which happens when a checkpoint that contains
    them is complete. The number of sessions does not depend on the parallelism: subtask i of n has the sessions i,
    i + n and so on, so no session is left alone when a job is rescaled.
    """

    def __init__(self, settings: MqttSourceSettings) -> None:
        self._settings = settings

    @staticmethod
    def builder() -> MqttSourceBuilder:
        """Return a builder without settings."""
        return MqttSourceBuilder()

    def __repr__(self) -> str:
        return f"MqttSource({self._settings.reading().place})"

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def max_parallelism(self) -> int | None:
        """Return 1 where there is one session; of several, each subtask has some, and further ones receive nothing."""
        return 1 if self._settings.sessions == 1 else None

    @property
    def produced_type(self) -> TypeInformation | None:
        return self._settings.schema.get_produced_type()

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return QueueSplits(ctx, self._settings.reading(), lambda: None)  # readers begin their sessions

    def restore_enumerator(self, ctx: EnumeratorContext, state: bool) -> SplitEnumerator:
        return QueueSplits(ctx, self._settings.reading(), lambda: None, is_ready=state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        settings, metrics = self._settings, ctx.metrics or MetricGroup()
        losses = metrics.counter("numSessionsLost")

        def note_lost(number: int) -> None:
            losses.inc()
            log.warning(
                "MQTT at %s has lost the session %s-%d, with the messages in it; have the broker keep sessions on "
                "disk (mosquitto: persistence true), or raise set_session_expiry()",
                settings.broker.place, settings.client_id, number,
            )  # fmt: skip

        numbers = range(ctx.subtask, settings.sessions, ctx.parallelism)
        connect = partial(self._connect, numbers, SessionHistory(settings.broker.place, note_lost))
        decoder = MessageDecoder(settings.schema, settings.malformed, metrics)
        return QueueReader(ctx, settings.reading(), connect, decoder)

    def _connect(self, numbers: Sequence[int], history: SessionHistory) -> BrokerConsumer:
        settings = self._settings
        sessions = {number: settings.session(number) for number in numbers}
        return MqttConsumer(settings.broker, sessions, settings.subscriptions, history)


class MqttSourceBuilder(MqttBrokerBuilder):
    """Collects the settings of an `MqttSource`; `set_url`, `set_topics` and `set_client_id` are required."""

    def __init__(self) -> None:
        super().__init__()
        self._client_id = ""
        self._filters: tuple[str, ...] = ()
        self._settings: dict[str, object] = {}

    def set_topics(self, *filters: str) -> MqttSourceBuilder:
        """Set the topics, such as "sensors/kitchen", "sensors/+" or "sensors/#".

        Raises:
            MqttRefusal: there is none, or one is malformed.
        """
        if not filters:
            raise MqttRefusal("no topic is named", "call set_topics('sensors/#')")
        self._filters = tuple(checked_filter(name) for name in filters)
        return self

    def set_client_id(self, prefix: str) -> MqttSourceBuilder:
        """Set the beginning of the client ids, which no other source or program may have; a number follows.

        The broker knows sessions by client ids, so another one begins without the messages that wait.
        """
        self._client_id = prefix
        return self

    def set_shared_subscription(self, group: str, sessions: int) -> MqttSourceBuilder:
        """Divide the messages among several sessions by a shared subscription (`$share/group/...`).

        The default is one session, so one subtask receives.

        Args:
            group: its name at the broker.
            sessions: their number, whatever the parallelism; further subtasks receive nothing.

        Raises:
            ValueError: the number is not between 1 and 1,000.
            MqttRefusal: the name is none.
        """
        if not 1 <= sessions <= MOST_SESSIONS:
            raise ValueError(f"expected 1 to {MOST_SESSIONS} sessions, found {sessions}")
        if not group or any(sign in group for sign in "/#+"):
            raise MqttRefusal(f"{group!r} is no name of a shared subscription", "write it without /, # and +")
        self._settings.update(group=group, sessions=sessions)
        return self

    def set_session_expiry(self, time: Duration | int) -> MqttSourceBuilder:
        """Set how long the broker keeps the sessions of a job that is away, in milliseconds; the default is a day.

        The messages of an expired session are lost. With version 3.1.1 the broker decides.
        """
        self._settings["expiry_s"] = max(1, to_millis(time) // 1_000)
        return self

    def set_max_unacknowledged(self, messages: int) -> MqttSourceBuilder:
        """Set how many messages of a session wait for a checkpoint, at most; the default is 10,000.

        With version 3.1.1, or where it has a lower limit, the broker decides.

        Raises:
            ValueError: the number is not between 1 and 65,535.
        """
        if not 1 <= messages <= 0xFFFF:
            raise ValueError(f"expected 1 to 65535 messages, found {messages}")
        self._settings["most_unacknowledged"] = messages
        return self

    def set_deserialization_schema(self, schema: DeserializationSchema) -> MqttSourceBuilder:
        """Set what decodes the payloads of messages; the default is that a record is an `MqttMessage`."""
        self._settings["schema"] = PayloadSchema(schema)
        return self

    def set_malformed_records(self, policy: MalformedRecords) -> MqttSourceBuilder:
        """Set what becomes of messages that cannot be decoded; the default is `MalformedRecords.fail()`."""
        self._settings["malformed"] = policy
        return self

    def build(self) -> MqttSource:
        """Return the source.

        Raises:
            MqttRefusal: a required setting is missing.
        """
        broker = self._checked_broker()
        if not self._filters:
            raise MqttRefusal("the source has no topics", "call set_topics('sensors/#') of its builder")
        if not self._client_id:
            remedy = "call set_client_id(...) of its builder with a name of this job"
            raise MqttRefusal("the source has no client id, by which the broker knows what it has received", remedy)
        settings = MqttSourceSettings(broker, self._client_id, self._filters)
        return MqttSource(replace(settings, **self._settings))  # type: ignore[arg-type]


__all__ = ["MqttSource", "MqttSourceBuilder"]
