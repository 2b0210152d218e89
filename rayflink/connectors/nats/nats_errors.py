"""The errors of the connectors of NATS, and the classification of what servers and the client library answer."""

from __future__ import annotations

from rayflink.common.errors import ConnectorError, SuppressRestarts, described

_NO_STREAM = 10059
"""The code of JetStream for a stream that is not there."""
_NO_JETSTREAM = (10039, 10076)
"""The codes for an account, and a server, without JetStream."""
_DENIED = ("AuthorizationError", "InvalidUserCredentialsError")
_OUTAGES = {
    "TimeoutError", "ConnectionClosedError", "StaleConnectionError", "NoServersError", "OSError", "NoRespondersError",
    "ServiceUnavailableError", "ConnectionDrainingError", "OutboundBufferLimitError",
    "IncompleteReadError",
}  # fmt: skip
"""Names of exceptions of a server that is away, starts, or elects a leader."""
_TLS = ("SecureConnRequiredError", "SecureConnWantedError", "SecureConnFailedError", "SSLError")


class NatsError(ConnectorError):
    """NATS cannot be used as the source or sink needs it."""


class NatsOutage(NatsError):
    """NATS did not answer, or could not serve the request now: it is tried again for a while."""


class NatsRefusal(NatsError, SuppressRestarts):
    """NATS refuses the credentials or the request: a restart would only repeat it."""


class MissingStreamMessages(NatsError, SuppressRestarts):
    """Messages that the source has not read are gone."""


def failure_of(error: BaseException, doing: str, place: str) -> NatsError:
    """Return what an exception of the client library means.

    >>> failure_of(ConnectionRefusedError("refused"), "reading stream 'ORDERS'", "localhost:4222")
    NatsOutage("reading stream 'ORDERS' failed: no service by NATS at localhost:4222 (ConnectionRefusedError: \
refused)", 'check that it runs and can be reached from every node, or raise set_outage_timeout()')

    Args:
        doing: the action that failed, such as "reading stream 'ORDERS'".
    """
    if isinstance(error, NatsError):
        return error
    names = {base.__name__ for base in type(error).__mro__}
    answer = " ".join(str(error).split())
    failure = f"{doing} failed"
    if names.intersection(_DENIED) or _is_denied(answer):
        remedy = "correct user, password, token or key of the source or sink, or the permissions of that user"
        return NatsRefusal(f"{failure}, as NATS at {place} refuses access: {answer}", remedy)
    if names.intersection(_TLS):
        remedy = "call set_tls() where the server wants TLS, with the file of its authority, and not where it does not"
        return NatsRefusal(f"{failure}: no TLS connection to NATS at {place} ({described(error)})", remedy)
    if "MaxPayloadError" in names:
        remedy = "send less in a message, or raise max_payload of the server"
        return NatsRefusal(f"{failure}: a message is greater than NATS at {place} takes", remedy)
    if getattr(error, "err_code", None) == _NO_STREAM:
        return NatsRefusal(f"{failure}: NATS at {place} has no such stream", "create the stream, or correct its name")
    if getattr(error, "err_code", None) in _NO_JETSTREAM:
        problem = f"{failure}: the account has no JetStream at {place} ({answer})"
        return NatsRefusal(problem, "start nats-server with -js, and enable jetstream for the account of this user")
    if "NoRespondersError" in names:
        remedy = "check that the server has JetStream (nats-server -js), and that its cluster has a leader"
        return NatsOutage(f"{failure}: no server answers for JetStream at {place}", remedy)
    if names & {"ServiceUnavailableError"} and "maximum" in answer:
        problem = f"{failure}: a stream of NATS at {place} is full ({answer})"
        return NatsOutage(problem, "raise its limits, have it discard old messages, or have its readers acknowledge")
    if names & _OUTAGES or type(error).__name__ == "Error":  # such as "maximum connections exceeded"
        remedy = "check that it runs and can be reached from every node, or raise set_outage_timeout()"
        return NatsOutage(f"{failure}: no service by NATS at {place} ({described(error)})", remedy)
    remedy = "correct the source or sink, the stream, or the server"
    return NatsRefusal(f"{failure}: NATS at {place} answers {described(error)}", remedy)


def _is_denied(answer: str) -> bool:
    """Return whether an answer of the server is about rights.

    >>> _is_denied("nats: Permissions Violation for Publish to \\"orders\\""), _is_denied("nats: timeout")
    (True, False)
    """
    lower = answer.lower()
    words = ("permissions violation", "authorization violation", "authentication expired", "user authentication")
    return any(word in lower for word in words)


__all__ = ["MissingStreamMessages", "NatsError", "NatsOutage", "NatsRefusal", "failure_of"]
