"""The client library of Kafka: its import, clients that log through this process's logs, and their errors."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rayflink.common.text_output.logs import get_logger

from .kafka_errors import KafkaAccessDenied, KafkaBrokerUnavailable, KafkaClientError, KafkaPropertyError
from .kafka_properties import check_properties, client_properties, shown_properties, without_secrets

if TYPE_CHECKING:
    import confluent_kafka

log = get_logger(__name__)
client_log = logging.getLogger("rayflink.kafka.client")
"""The lines that librdkafka logs, which are many while a broker is down."""

_DENIED = (
    "_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE",
    "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "_SSL",
)  # fmt: skip
_OUTAGES = (
    "_ALL_BROKERS_DOWN", "_TRANSPORT", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_RESOLVE", "_WAIT_COORD", "_WAIT_CACHE",
    "_MSG_TIMED_OUT", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "BROKER_NOT_AVAILABLE", "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR",
    "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "REPLICA_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR",
    "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "_NO_OFFSET", "THROTTLING_QUOTA_EXCEEDED",
)  # fmt: skip
MISSING = ("_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID")
"""Names of errors of topics and partitions that brokers do not know."""


def library() -> Any:
    """Return the module confluent_kafka.

    Raises:
        KafkaClientError: it is not installed.
    """
    try:
        import confluent_kafka
    except ImportError as error:
        remedy = "pip install 'rayflink[kafka]' on every node"
        raise KafkaClientError(f"confluent-kafka is missing ({error})", remedy) from error
    return confluent_kafka


def admin_library() -> Any:
    """Return the module confluent_kafka.admin.

    Raises:
        KafkaClientError: it is not installed.
    """
    library()
    return import_module("confluent_kafka.admin")


def consumer_properties(properties: Mapping[str, object], own: Collection[str] = ()) -> dict[str, str]:
    """Return the properties of a consumer as librdkafka takes them, after it has checked them.

    Args:
        own: names of the connector's own properties, for suggestions.

    Raises:
        KafkaPropertyError: one is unknown, or has a value that it cannot take.
    """
    translated = client_properties(properties)
    check_properties(translated, lambda checked: library().Consumer({"group.id": "-", **checked}).close(), own)
    return translated


def producer_properties(properties: Mapping[str, object], own: Collection[str] = ()) -> dict[str, str]:
    """Return the properties of a producer as librdkafka takes them, after it has checked them.

    Args:
        own: names of the connector's own properties, for suggestions.

    Raises:
        KafkaPropertyError: one is unknown, or has a value that it cannot take.
    """
    translated = client_properties(properties)
    check_properties(translated, lambda checked: library().Producer(checked), own)
    return translated


class ClientErrors:
    """The errors that a client reports beside those of its calls, such as lost connections.

    Args:
        properties: of the client; their secrets appear in no message.
    """

    def __init__(self, properties: Mapping[str, object]) -> None:
        self._properties = properties
        self.last = ""
        """The newest error; "" after `clear`."""
        self.missing: Counter[str] = Counter()
        """Reports of topics and partitions that brokers do not know, since `clear`; each look gives one."""
        self.denied: KafkaAccessDenied | None = None
        """The refusal of a broker; it does not pass by itself."""
        self.fatal: KafkaClientError | None = None
        """An error after which the client is of no use."""

    def note(self, error: confluent_kafka.KafkaError) -> None:
        """Take an error; the property `error_cb` of a client is this method."""
        name, message = error_name(error), without_secrets(error.str(), self._properties)
        if name in MISSING:
            self.missing[message] += 1
            return
        if name != "_ALL_BROKERS_DOWN" or not self.last:  # which says less than the error before it
            self.last = message
        failure = as_exception(error, self._properties)
        if "receive.message.max.bytes" in message:
            self.fatal = KafkaClientError(f"a record is too large to receive: {message}", "raise that property")
        if isinstance(failure, KafkaAccessDenied):
            self.denied = failure
        elif error.fatal():
            self.fatal = failure

    def clear(self) -> None:
        """Forget an outage that has passed."""
        self.last = ""
        self.missing.clear()

    def check(self) -> None:
        """Raise an error that does not pass by itself.

        Raises:
            KafkaAccessDenied: a broker refuses the credentials.
            KafkaClientError: the client is of no use any more.
        """
        error = self.denied or self.fatal
        if error is not None:
            raise error


def place_of(properties: Mapping[str, object]) -> str:
    """Return where a client connects, for messages.

    >>> place_of({"bootstrap.servers": "a:9092,b:9092", "sasl.username": "me", "sasl.password": "secret"})
    'a:9092,b:9092 as me'
    """
    user = properties.get("sasl.username")
    return str(properties.get("bootstrap.servers", "no servers")) + (f" as {user}" if user else "")


def error_name(error: confluent_kafka.KafkaError) -> str:
    """Return the name of an error's code, such as "_TIMED_OUT"."""
    return str(error.name())


def is_transient(error: confluent_kafka.KafkaError) -> bool:
    """Return whether the error may pass by itself, as when a broker starts again."""
    return error_name(error) in _OUTAGES or (bool(error.retriable()) and not error.fatal())


def as_exception(
    error: confluent_kafka.KafkaError, properties: Mapping[str, object], doing: str = ""
) -> KafkaClientError:
    """Return an error of the client as one that says what to do.

    Args:
        doing: what failed, such as "reading topic orders"; "": nothing is said of it.
    """
    reason = f"{error_name(error)}: {without_secrets(error.str(), properties)}"
    problem = f"{doing or 'Kafka'} at {place_of(properties)} failed with {reason}"
    if error_name(error) in _DENIED:
        names = "security.protocol, sasl.mechanism, sasl.username, sasl.password, ssl.*"
        return KafkaAccessDenied(problem, f"check the properties of the client ({names}) and what the user may do")
    if is_transient(error):
        return KafkaBrokerUnavailable(problem, "check that the brokers run and can be reached from every node")
    return KafkaClientError(problem, "see the logs of the brokers")


def new_consumer(properties: Mapping[str, object], errors: ClientErrors) -> Any:
    """Return a consumer that reports to `errors` and logs through this process's logs."""
    return _new("Consumer", properties, errors)


def new_producer(properties: Mapping[str, object], errors: ClientErrors) -> Any:
    """Return a producer that reports to `errors` and logs through this process's logs."""
    return _new("Producer", properties, errors)


def new_admin(properties: Mapping[str, object], errors: ClientErrors) -> Any:
    """Return a client that asks brokers, which reports to `errors` and logs through this process's logs."""
    return _new("AdminClient", properties, errors)


def _new(kind: str, properties: Mapping[str, object], errors: ClientErrors) -> Any:
    module = library()
    create = getattr(admin_library() if kind == "AdminClient" else module, kind)
    try:
        return create({**properties, "error_cb": errors.note}, logger=client_log)
    except module.KafkaException as error:
        raise as_exception(error.args[0], properties, f"creating a client ({kind.lower()})") from None


__all__ = [
    "MISSING",
    "ClientErrors",
    "KafkaAccessDenied",
    "KafkaBrokerUnavailable",
    "KafkaClientError",
    "KafkaPropertyError",
    "admin_library",
    "as_exception",
    "client_log",
    "client_properties",
    "consumer_properties",
    "error_name",
    "is_transient",
    "library",
    "new_admin",
    "new_consumer",
    "new_producer",
    "place_of",
    "producer_properties",
    "shown_properties",
    "without_secrets",
]
