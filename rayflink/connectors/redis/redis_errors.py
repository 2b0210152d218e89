"""The errors of the connectors of Redis, and the classification of what the client library raises."""

from __future__ import annotations

from rayflink.common.errors import ConnectorError, SuppressRestarts, described

_OUTAGES = (
    "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "UNBLOCKED", "NOREPLICAS", "MISCONF", "BUSY ",
)  # fmt: skip
"""First words of answers of a server that is restarting, was replaced as the master, or is busy."""
_DENIED = ("NOAUTH", "WRONGPASS", "NOPERM")


class RedisError(ConnectorError):
    """Redis cannot be used as the source or sink needs it."""


class RedisOutage(RedisError):
    """Redis did not answer, or could not serve the request now: it is tried again for a while."""


class RedisRefusal(RedisError, SuppressRestarts):
    """Redis refuses the credentials or the request: a restart would only repeat it."""


class MissingEntries(RedisError, SuppressRestarts):
    """Entries that the source has not read are gone."""


def failure_of(error: Exception, doing: str, place: str) -> RedisError:
    """Return what an exception of the client library means.

    >>> failure_of(ValueError("NOPERM no permissions"), "reading stream 'orders'", "localhost:6379/0")
    RedisRefusal("reading stream 'orders' failed, as Redis at localhost:6379/0 refuses access: NOPERM no permissions", \
"correct user, password and permissions in the URL (redis://user:password@host:6379/0) and in Redis' ACL")

    Args:
        doing: the action that failed, such as "reading stream 'orders'".
    """
    names = {base.__name__ for base in type(error).__mro__}
    answer = " ".join(str(error).split())
    failure = f"{doing} failed"
    if names & {"AuthenticationError", "AuthorizationError", "NoPermissionError"} or answer.startswith(_DENIED):
        remedy = "correct user, password and permissions in the URL (redis://user:password@host:6379/0)"
        remedy += " and in Redis' ACL"
        return RedisRefusal(f"{failure}, as Redis at {place} refuses access: {answer}", remedy)
    if answer.startswith("WRONGTYPE") or "WRONGTYPE" in answer:
        problem = f"{failure}: the key in Redis at {place} is no stream ({answer})"
        return RedisRefusal(problem, "give the key of a stream, or another key")
    if names & {"MovedError", "AskError"} or answer.startswith(("MOVED", "ASK ", "CROSSSLOT")):
        problem = f"{failure}: Redis at {place} is a node of a cluster, and the key is on another ({answer})"
        return RedisRefusal(problem, "give the URL of the node that has the stream, or of a proxy for the cluster")
    if "OutOfMemoryError" in names or answer.startswith("OOM"):
        problem = f"{failure}: Redis at {place} has reached its memory limit ({answer})"
        return RedisOutage(problem, "raise maxmemory, or trim streams, as with set_max_length() on the sink")
    if names & {"ConnectionError", "TimeoutError", "OSError", "ReadOnlyError"} or answer.startswith(_OUTAGES):
        remedy = "check that it runs and can be reached from every node, or raise set_outage_timeout()"
        return RedisOutage(f"{failure}: no service by Redis at {place} ({described(error)})", remedy)
    return RedisError(f"{failure}: Redis at {place} answers {answer!r}", "correct the source or sink, or the server")


__all__ = ["MissingEntries", "RedisError", "RedisOutage", "RedisRefusal", "failure_of"]
