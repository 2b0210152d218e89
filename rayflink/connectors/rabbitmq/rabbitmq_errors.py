"""The errors of the connectors of RabbitMQ, and the classification of what the client library raises."""

from __future__ import annotations

from rayflink.common.errors import ConnectorError, described

from ..message_queues.broker_errors import BrokerOutage, BrokerRefusal

_GUESSES = frozenset(("ProbableAuthenticationError", "ProbableAccessDeniedError"))
"""Errors of pika about a connection that was closed while it was opened, by the broker or by an outage."""


class RMQError(ConnectorError):
    """RabbitMQ cannot be used as the source or sink needs it."""


class RMQOutage(RMQError, BrokerOutage):
    """RabbitMQ is away, or cannot serve now: it is tried again for a while."""


class RMQRefusal(RMQError, BrokerRefusal):
    """RabbitMQ refuses credentials or a request, or a queue is not as it has to be."""


def failure_of(error: BaseException, doing: str, place: str) -> RMQError:
    """Return what an exception of the client library means.

    >>> failure_of(OSError("connection reset"), "consuming queue 'q'", "mq:5672/").problem
    "consuming queue 'q' failed: no service by RabbitMQ at mq:5672/ (OSError: connection reset)"

    Args:
        doing: the action that failed, such as "consuming queue 'orders'".
        place: host, port and virtual host.
    """
    names = {base.__name__ for base in type(error).__mro__}
    code, answer = getattr(error, "reply_code", 0), " ".join(str(getattr(error, "reply_text", "")).split())
    failed, broker = f"{doing} failed", f"RabbitMQ at {place}"
    guesses = str(error) if names & _GUESSES and "ConnectionClosedByBroker" in str(error) else ""
    if "AuthenticationError" in names or "(403)" in guesses or (code == 403 and "Login was refused" in answer):
        return RMQRefusal(f"{failed}: {broker} refuses the credentials", "correct set_user_name() and set_password()")
    if code == 530 or "(530)" in guesses:
        remedy = "create the virtual host, grant the user permissions in it, or correct set_virtual_host()"
        return RMQRefusal(f"{failed}: {broker} opens no connection ({answer or described(error)})", remedy)
    if code == 403:
        remedy = "grant the user permissions to configure, write and read (rabbitmqctl set_permissions), or end the "
        remedy += "consumer that has the queue exclusively"
        return RMQRefusal(f"{failed}: {broker} refuses access ({answer})", remedy)
    if code == 404 and "home node" not in answer:
        remedy = "declare it, or start the job anew, without its checkpoint: a source then declares a durable queue"
        return RMQRefusal(f"{failed}: it is not there ({answer} at {place})", remedy)
    if code == 405:
        problem = f"{failed}: in {broker} the queue belongs to another connection ({answer})"
        return RMQRefusal(problem, "declare one that is not exclusive")
    if code == 406 and "acknowledgement" in answer and "timed out" in answer:
        remedy = "take checkpoints more often than that, or raise the broker's consumer_timeout"
        return RMQOutage(f"{failed}: {broker} waited too long for an acknowledgement ({answer})", remedy)
    if code == 406:
        return RMQRefusal(
            f"{failed}: {broker} refuses ({answer})", "correct the source or sink, or the broker's limits"
        )
    remedy = "check that it runs and can be reached from every node, or raise set_outage_timeout()"
    reason = f"{code} {answer}" if code else described(error) if str(error) else repr(error)
    return RMQOutage(f"{failed}: no service by {broker} ({reason})", remedy)


__all__ = ["RMQError", "RMQOutage", "RMQRefusal", "failure_of"]
