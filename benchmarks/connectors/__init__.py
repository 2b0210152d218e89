"""Benchmarks of connectors and formats, each beside the bare library or server that it uses.

Kafka, change data capture of PostgreSQL and MariaDB, Delta and Iceberg, object stores, Spark's frames, and the formats
of messages. Each module `ours_NAME.py` defines the `run` of `python -m benchmarks NAME`; their servers run on loopback
and are those of `benchmarks/servers/`. `ours_kafka_consumer.py` is no benchmark of its own: it is the bare client
beside SQL over a topic.
"""
