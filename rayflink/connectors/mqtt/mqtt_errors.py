"""The errors of the connectors of MQTT, and the classification of what brokers answer."""

from __future__ import annotations

from collections.abc import Mapping

from rayflink.common.errors import ConnectorError, described

from ..message_queues.broker_errors import BrokerOutage, BrokerRefusal

SESSION_TAKEN_OVER = 142
_OUTAGES = frozenset((0, 128, 136, 137, 139, 141, 147, 150, 151, 152, 159))
"""Reasons of a broker that is busy, shuts down, or has too much to do."""
_REMEDIES: Mapping[int, str] = {
    132: "set_protocol_version() to one that the broker speaks, '5' or '3.1.1'",
    133: "set another client id",
    134: "correct user and password of the source or sink",
    135: "correct user and password of the source or sink, or the permissions of that user at the broker",
    138: "have the broker lift the ban on this client",
    143: "correct the topic filter",
    144: "correct the topic",
    149: "send less in a message, or raise the greatest size of packets of the broker",
    154: "leave out set_retained(True), or have the broker take retained messages",
    155: "set_qos() to one that the broker takes",
    158: "leave out set_shared_subscription(), or use a broker that has shared subscriptions",
    161: "use a broker that has subscriptions with wildcards, or topics without them",
}
_REMEDY = "correct the source or sink, or the broker"
_AWAY = "check that it runs and can be reached from every node, or raise set_outage_timeout()"


class MqttOutage(BrokerOutage):
    """The broker did not answer, or could not serve now: it is tried again for a while."""


class MqttRefusal(BrokerRefusal):
    """The broker refuses the credentials or the request: a restart would only repeat it."""


class MqttConflict(ConnectorError):
    """The broker closes connections again and again, as it does where two clients have one client id."""


def failure_of_reason(value: int, name: str, doing: str, place: str) -> MqttOutage | MqttRefusal:
    """Return what a reason of a broker means.

    >>> failure_of_reason(135, "Not authorized", "connecting", "localhost:1883")
    MqttRefusal('connecting failed: MQTT at localhost:1883 answers "Not authorized"', 'correct user and password of \
the source or sink, or the permissions of that user at the broker')

    Args:
        value: of MQTT 5.
        name: of the reason.
        doing: the action that failed.
    """
    problem = f'{doing} failed: MQTT at {place} answers "{name}"'
    if value == SESSION_TAKEN_OVER:
        problem = f"{doing} failed: another client has connected to MQTT at {place} with the same client id"
        return MqttRefusal(problem, "set_client_id() to one that no other source or program uses")
    if value in _OUTAGES:
        return MqttOutage(problem, _AWAY)
    return MqttRefusal(problem, _REMEDIES.get(value, _REMEDY))


def failure_of(error: Exception, doing: str, place: str) -> MqttOutage | MqttRefusal:
    """Return what an exception of a socket, or of the client library, means.

    >>> failure_of(ConnectionRefusedError("refused"), "connecting", "localhost:1883")
    MqttOutage('connecting failed: no service by MQTT at localhost:1883 (ConnectionRefusedError: refused)', 'check \
that it runs and can be reached from every node, or raise set_outage_timeout()')
    """
    if isinstance(error, (MqttOutage, MqttRefusal)):
        return error
    names = {base.__name__ for base in type(error).__mro__}
    if "SSLCertVerificationError" in names or "WRONG_VERSION_NUMBER" in str(error):
        remedy = "call set_tls() with the file of the broker's authority, and not where the broker does not want TLS"
        return MqttRefusal(f"{doing} failed: no TLS connection to MQTT at {place} ({described(error)})", remedy)
    if isinstance(error, OSError) or "WebsocketConnectionError" in names:
        return MqttOutage(f"{doing} failed: no service by MQTT at {place} ({described(error)})", _AWAY)
    return MqttRefusal(f"{doing} failed with MQTT at {place}: {described(error)}", _REMEDY)


__all__ = ["MqttConflict", "MqttOutage", "MqttRefusal", "failure_of", "failure_of_reason"]
