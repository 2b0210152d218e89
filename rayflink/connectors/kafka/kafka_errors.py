"""The errors of the connectors of Kafka."""

from __future__ import annotations

from rayflink.common.errors import ConnectorError, SuppressRestarts


class KafkaClientError(ConnectorError):
    """Kafka cannot be used as the source or sink needs it."""


class KafkaBrokerUnavailable(KafkaClientError):
    """No broker answered in time: an outage, after which a restart may help."""


class KafkaPropertyError(KafkaClientError, ValueError):
    """A property of the client is unknown, or has a value that it cannot take."""


class KafkaAccessDenied(KafkaClientError, SuppressRestarts):
    """A broker refuses the credentials, or what the user may do: a restart would only repeat it."""


class KafkaTopicRecreated(KafkaClientError, SuppressRestarts):
    """A topic was deleted and created again while a job read it, so that its offsets mean nothing there."""


__all__ = [
    "KafkaAccessDenied", "KafkaBrokerUnavailable", "KafkaClientError", "KafkaPropertyError", "KafkaTopicRecreated",
]  # fmt: skip
