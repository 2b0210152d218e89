"""NATS JetStream as a source and a sink; needs `pip install 'rayflink[nats]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.message_logs.missing_messages import MissingMessages as MissingMessages
    from rayflink.connectors.nats.nats_errors import NatsError as NatsError
    from rayflink.connectors.nats.nats_messages import NatsMessage as NatsMessage
    from rayflink.connectors.nats.nats_positions import NatsStreamPosition as NatsStreamPosition
    from rayflink.connectors.nats.nats_sink import NatsSink as NatsSink
    from rayflink.connectors.nats.nats_sink import NatsSinkBuilder as NatsSinkBuilder
    from rayflink.connectors.nats.nats_source import NatsSource as NatsSource
    from rayflink.connectors.nats.nats_source import NatsSourceBuilder as NatsSourceBuilder
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.message_logs.missing_messages": "MissingMessages",
            "rayflink.connectors.nats.nats_errors": "NatsError",
            "rayflink.connectors.nats.nats_messages": "NatsMessage",
            "rayflink.connectors.nats.nats_positions": "NatsStreamPosition",
            "rayflink.connectors.nats.nats_sink": "NatsSink NatsSinkBuilder",
            "rayflink.connectors.nats.nats_source": "NatsSource NatsSourceBuilder",
        },
    )
