"""Redis Streams as a source and a sink; needs `pip install 'rayflink[redis]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.message_logs.missing_messages import MissingMessages as MissingMessages
    from rayflink.connectors.redis.redis_entries import RedisEntry as RedisEntry
    from rayflink.connectors.redis.redis_errors import RedisError as RedisError
    from rayflink.connectors.redis.redis_positions import RedisStreamPosition as RedisStreamPosition
    from rayflink.connectors.redis.redis_stream_sink import RedisStreamSink as RedisStreamSink
    from rayflink.connectors.redis.redis_stream_sink import RedisStreamSinkBuilder as RedisStreamSinkBuilder
    from rayflink.connectors.redis.redis_stream_source import RedisStreamSource as RedisStreamSource
    from rayflink.connectors.redis.redis_stream_source import RedisStreamSourceBuilder as RedisStreamSourceBuilder
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.message_logs.missing_messages": "MissingMessages",
            "rayflink.connectors.redis.redis_entries": "RedisEntry",
            "rayflink.connectors.redis.redis_errors": "RedisError",
            "rayflink.connectors.redis.redis_positions": "RedisStreamPosition",
            "rayflink.connectors.redis.redis_stream_sink": "RedisStreamSink RedisStreamSinkBuilder",
            "rayflink.connectors.redis.redis_stream_source": "RedisStreamSource RedisStreamSourceBuilder",
        },
    )
