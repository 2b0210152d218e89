"""Sources and sinks: files, frames, PostgreSQL, collections, generators, sockets and iterators.

- `files`: the file source and the file sink, whatever the format.
- `formats`: CSV, JSON, Parquet, ORC, Arrow and text, read and written as records or columns.
- `frames`: tables in blocks of columns, from and for Spark, Ray Data and the cache.
- `kafka`: the source, the exactly-once sink and their client;
- `message_logs`, with `redis` and `nats`: logs that are replayed by position;
- `message_queues`, with `rabbitmq` and `mqtt`: brokers whose deliveries are acknowledged with checkpoints;
- `http`: webhooks, and records as requests.
- `cdc`: change data capture, as far as it does not depend on the database.
- `postgres`: an exactly-once sink, and change data capture.
- `lakes`, with `delta` and `iceberg`: tables in Parquet files, as exactly-once sinks and as sources.

Each implements `rayflink.common.connector_base`. The builders that users call are in
`rayflink.datastream.connectors` and `rayflink.datastream.formats`, at PyFlink's paths.
"""
