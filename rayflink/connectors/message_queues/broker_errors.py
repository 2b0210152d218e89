"""The errors of brokers; each connector has subclasses of its own."""

from __future__ import annotations

from rayflink.common.errors import ConnectorError, SuppressRestarts


class BrokerOutage(ConnectorError):
    """A broker is away, or cannot serve now: it is tried again until the outage timeout."""


class BrokerRefusal(ConnectorError, SuppressRestarts):
    """A broker refuses credentials or a request, or a queue is not as it has to be: a restart would only repeat it."""


__all__ = ["BrokerOutage", "BrokerRefusal"]
