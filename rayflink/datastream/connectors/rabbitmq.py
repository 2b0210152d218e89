"""RabbitMQ queues as a source and a sink; needs `pip install 'rayflink[rabbitmq]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.rabbitmq.rabbitmq_connection import RMQConnectionConfig as RMQConnectionConfig
    from rayflink.connectors.rabbitmq.rabbitmq_errors import RMQError as RMQError
    from rayflink.connectors.rabbitmq.rabbitmq_sink import RMQSink as RMQSink
    from rayflink.connectors.rabbitmq.rabbitmq_sink import RMQSinkPublishOptions as RMQSinkPublishOptions
    from rayflink.connectors.rabbitmq.rabbitmq_source import RMQSource as RMQSource
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.rabbitmq.rabbitmq_connection": "RMQConnectionConfig",
            "rayflink.connectors.rabbitmq.rabbitmq_errors": "RMQError",
            "rayflink.connectors.rabbitmq.rabbitmq_sink": "RMQSink RMQSinkPublishOptions",
            "rayflink.connectors.rabbitmq.rabbitmq_source": "RMQSource",
        },
    )
