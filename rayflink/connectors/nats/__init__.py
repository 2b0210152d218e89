"""NATS JetStream as a source and a sink; needs `pip install 'rayflink[nats]'`. See docs/nats.md.

- `nats_errors`, `nats_server`, `nats_connection`: servers, connections, and what can go wrong with them;
- `nats_positions`: positions in a stream, splits, and the decision whether messages are missing. Pure;
- `nats_messages`: messages as records, and records as messages;
- `nats_pull`, `nats_fetcher`: the thread that reads a stream;
- `nats_source`, `nats_sink`: what a program builds.
"""
