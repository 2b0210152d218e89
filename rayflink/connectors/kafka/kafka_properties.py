"""The properties of Kafka's clients: names of the Java client become librdkafka's, secrets are hidden."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Final

from rayflink.common.configuration import shown_value

from .kafka_errors import KafkaPropertyError

_SECRETS = ("passphrase", "key.pem", "oauthbearer.config", "kinit.cmd")
"""Parts of names whose values are secret, beside those that are so in every option."""

_RENAMED: Final = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.certificate.key.location": "ssl.key.location",
}
"""Name of the Java client, or second name of librdkafka -> the name that is used here."""

_PEM = "give PEM files: ssl.ca.location, and ssl.certificate.location with ssl.key.location for a client's certificate"
_OAUTH = "set sasl.oauthbearer.method, as oidc with sasl.oauthbearer.token.endpoint.url"
_SCHEMAS = "set the schema on the builder of the source or sink"
_REFUSED: Final = {
    "sasl.jaas.config": "set sasl.username and sasl.password, with sasl.mechanism PLAIN or SCRAM-SHA-512; for Kerberos "
    "sasl.kerberos.principal and sasl.kerberos.keytab",
    "sasl.login.callback.handler.class": _OAUTH,
    "sasl.client.callback.handler.class": _OAUTH,
    "ssl.truststore.location": _PEM,
    "ssl.truststore.password": _PEM,
    "ssl.truststore.type": _PEM,
    "ssl.keystore.type": "set ssl.keystore.location to a PKCS#12 file, or " + _PEM,
    "key.deserializer": _SCHEMAS,
    "value.deserializer": _SCHEMAS,
    "key.serializer": _SCHEMAS,
    "value.serializer": _SCHEMAS,
    "interceptor.classes": "use a map() of the stream",
    "metric.reporters": "the metrics of the job have those of the client",
    "partitioner.class": "set partitioner, such as murmur2_random, or compute the partition in the record's schema",
    "max.poll.records": "batches have the size that the job has room for; fetch.max.bytes limits what a broker sends",
    "max.block.ms": "set delivery.timeout.ms",
}
"""Name of the Java client that librdkafka has not -> the remedy."""

_VALUES: Final = {"auto.offset.reset": {"none": "error"}}
"""Property -> value of the Java client -> value of librdkafka."""

KNOWN: Final = frozenset(
    """
    acks allow.auto.create.topics api.version.fallback.ms api.version.request api.version.request.timeout.ms
    auto.commit.interval.ms auto.offset.reset batch.num.messages batch.size bootstrap.servers broker.address.family
    broker.address.ttl broker.version.fallback check.crcs client.dns.lookup client.id client.rack client.software.name
    client.software.version compression.codec compression.level compression.type connections.max.idle.ms
    coordinator.query.interval.ms debug delivery.timeout.ms enable.auto.commit enable.auto.offset.store
    enable.gapless.guarantee enable.idempotence enable.metrics.push enable.partition.eof enable.random.seed
    enable.sasl.oauthbearer.unsecure.jwt enable.sparse.connections enable.ssl.certificate.verification
    fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms
    fetch.wait.max.ms group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
    https.ca.location https.ca.pem isolation.level linger.ms log.connection.close log.queue log.thread.name log_level
    max.in.flight max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms
    message.copy.max.bytes message.max.bytes message.send.max.retries message.timeout.ms metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy partition.assignment.strategy partitioner
    queue.buffering.backpressure.threshold queue.buffering.max.kbytes queue.buffering.max.messages
    queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages receive.message.max.bytes
    reconnect.backoff.max.ms reconnect.backoff.ms request.required.acks request.timeout.ms retries
    retry.backoff.max.ms retry.backoff.ms sasl.kerberos.keytab sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.principal sasl.kerberos.service.name sasl.mechanism
    sasl.mechanisms sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.private.key.pem
    sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.config sasl.oauthbearer.extensions
    sasl.oauthbearer.grant.type sasl.oauthbearer.method sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url
    sasl.password sasl.username security.protocol session.timeout.ms socket.blocking.max.ms
    socket.connection.setup.timeout.ms socket.keepalive.enable socket.max.fails socket.nagle.disable
    socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms ssl.ca.location ssl.ca.pem
    ssl.certificate.location ssl.certificate.pem ssl.cipher.suites ssl.crl.location ssl.curves.list
    ssl.endpoint.identification.algorithm ssl.engine.id ssl.engine.location ssl.key.location ssl.key.password
    ssl.key.pem ssl.keystore.location ssl.keystore.password ssl.providers ssl.sigalgs.list statistics.interval.ms
    sticky.partitioning.linger.ms topic.blacklist topic.metadata.propagation.max.ms
    topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
    transaction.timeout.ms transactional.id
    """.split()
)
"""The properties of librdkafka that a program may set; suggestions for a name that it does not know are of these."""

_UNKNOWN = re.compile(r'No such configuration property: "([^"]*)"')


def is_secret(name: str) -> bool:
    """Return whether the value of a property must not be shown.

    >>> [is_secret(name) for name in ("sasl.password", "ssl.key.pem", "sasl.username")]
    [True, True, False]
    """
    return any(part in name.lower() for part in _SECRETS) or shown_value(name, "") != ""


def shown_properties(properties: Mapping[str, object]) -> dict[str, str]:
    """Return properties as people may see them, with secrets masked.

    >>> shown_properties({"client.id": "a", "sasl.password": "b"})
    {'client.id': 'a', 'sasl.password': '******'}
    """
    return {name: "******" if is_secret(name) else str(value) for name, value in properties.items()}


def without_secrets(message: str, properties: Mapping[str, object]) -> str:
    """Return a message of the client in which the values of secret properties are masked."""
    for name, value in properties.items():
        if is_secret(name) and str(value):
            message = message.replace(str(value), "******")
    return message


def client_properties(properties: Mapping[str, object]) -> dict[str, str]:
    """Return properties under the names and values of librdkafka.

    >>> client_properties({"fetch.max.wait.ms": 20, "auto.offset.reset": "none", "check.crcs": True})
    {'fetch.wait.max.ms': '20', 'auto.offset.reset': 'error', 'check.crcs': 'true'}
    >>> client_properties({"value.deserializer": "x"})
    Traceback (most recent call last):
    rayflink.connectors.kafka.kafka_errors.KafkaPropertyError: value.deserializer is a property of Kafka's Java ...

    Raises:
        KafkaPropertyError: one is a property of the Java client that has no equal in librdkafka.
    """
    translated: dict[str, str] = {}
    for name, value in properties.items():
        if name in _REFUSED:
            problem = f"{name} is a property of Kafka's Java client, which librdkafka does not have"
            raise KafkaPropertyError(problem, _REFUSED[name])
        if value is None or callable(value):
            actual = "None" if value is None else "a function"
            raise KafkaPropertyError(f"the property {name} is {actual}, a string is wanted", "remove it")
        string = str(value).lower() if isinstance(value, bool) else str(value)
        if name == "buffer.memory":  # bytes
            name, string = "queue.buffering.max.kbytes", _kibibytes(string)
        translated[_RENAMED.get(name, name)] = _VALUES.get(name, {}).get(string.lower(), string)
    return translated


def _kibibytes(string: str) -> str:
    if not string.isdigit():
        raise KafkaPropertyError(f"buffer.memory is {string!r}, a number of bytes is wanted", "correct it")
    return str(max(1, int(string) // 1024))


def check_properties(
    properties: Mapping[str, str], create: Callable[[dict[str, str]], object], own: Collection[str] = ()
) -> None:
    """Check names and values by creating a client that connects to nothing.

    Args:
        properties: under librdkafka's names.
        create: makes a client of properties, and closes it.
        own: further names that a program may have meant: those of the connector itself.

    Raises:
        KafkaPropertyError: the client refuses one.
    """
    checked = {name: value for name, value in properties.items() if name not in ("bootstrap.servers", "debug")}
    try:
        create({**checked, "log_level": "0"})
    except Exception as error:  # KafkaException, ValueError or TypeError of the client
        first = error.args[0] if error.args else error
        reason = str(first.str()) if hasattr(first, "str") else str(error)
        unknown = _UNKNOWN.search(reason)
        if unknown is None:
            problem = f"Kafka's client refuses its properties: {without_secrets(reason, properties)}"
            raise KafkaPropertyError(problem, "correct the property that it names") from None
        name = unknown[1]
        near = get_close_matches(name, sorted({*KNOWN, *_RENAMED, *own}), n=3, cutoff=0.75)
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        page = "librdkafka's CONFIGURATION.md lists them all"
        raise KafkaPropertyError(f"the property {name} is unknown to Kafka's client", f"{meant}{page}") from None


__all__ = ["KNOWN", "check_properties", "client_properties", "is_secret", "shown_properties", "without_secrets"]
