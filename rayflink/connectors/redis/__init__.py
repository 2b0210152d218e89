"""Redis Streams as a source and a sink; needs `pip install 'rayflink[redis]'`. See docs/redis.md.

- `redis_errors`, `redis_client`: connections, and what can go wrong with them;
- `redis_positions`: ids, splits, and the decision whether entries are missing;
- `redis_entries`: entries as records, and records as entries;
- `redis_fetcher`: the thread that reads streams;
- `redis_stream_source`, `redis_stream_sink`: what a program builds.
"""
