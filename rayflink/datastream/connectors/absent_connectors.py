"""PyFlink's connectors that are absent here: an import of their names says what to use instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

_OWN = "a sink of your own (docs/write-a-connector.md)"
INSTEAD = {
    "cassandra": f"write rows by key with cassandra-driver in {_OWN}: an upsert that is repeated changes nothing",
    "dynamic_kafka": "use a KafkaSource of rayflink.datastream.connectors.kafka for each cluster, with a topic pattern",
    "elasticsearch": (
        "send documents with their ids to the _bulk endpoint of Elasticsearch or OpenSearch by HttpSink of "
        "rayflink.datastream.connectors.http"
    ),
    "kinesis": (
        "read and write by Kafka (rayflink.datastream.connectors.kafka), or call boto3 in a source or a sink of your "
        "own (docs/write-a-connector.md)"
    ),
    "pulsar": (
        "use Pulsar's handler of Kafka's protocol, with KafkaSource and KafkaSink of "
        "rayflink.datastream.connectors.kafka"
    ),
}
"""Name of PyFlink's module -> what to do."""
_CLASSES = {
    "cassandra": (
        "CassandraCommitter CassandraFailureHandler CassandraSink ClusterBuilder ConsistencyLevel MapperOptions"
    ),
    "dynamic_kafka": (
        "DynamicKafkaSource DynamicKafkaSourceBuilder KafkaMetadataService KafkaStreamSetSubscriber "
        "KafkaStreamSubscriber SingleClusterTopicMetadataService StreamPatternSubscriber"
    ),
    "elasticsearch": (
        "Elasticsearch6SinkBuilder Elasticsearch7SinkBuilder ElasticsearchEmitter ElasticsearchSink "
        "ElasticsearchSinkBuilderBase FlushBackoffType"
    ),
    "kinesis": (
        "FlinkKinesisConsumer KinesisDeserializationSchema KinesisFirehoseSink "
        "KinesisFirehoseSinkBuilder KinesisShardAssigner KinesisStreamsSink KinesisStreamsSinkBuilder "
        "PartitionKeyGenerator WatermarkTracker"
    ),
    "pulsar": (
        "MessageDelayer PulsarSink PulsarSinkBuilder PulsarSource PulsarSourceBuilder RangeGenerator StartCursor "
        "StopCursor TopicRoutingMode"
    ),
}


_IN_SQL = {
    **{module: module for module in ("cassandra", "elasticsearch", "kinesis", "pulsar")},
    "opensearch": "elasticsearch", "firehose": "kinesis", "dynamic-kafka": "dynamic_kafka",
}  # fmt: skip
"""SQL connector of Flink, without its version -> name of PyFlink's module."""
_UPSERTS_IN_SQL = {"dynamodb": "boto3", "hbase": "happybase", "mongodb": "pymongo"}
"""SQL connector of Flink that PyFlink has no module for -> Python's client."""


def instead_in_sql(connector: str) -> str | None:
    """Return what to use instead of a SQL connector of Flink; None: Flink has no such connector, or it is there.

    >>> instead_in_sql("pulsar")
    "use Pulsar's handler of Kafka's protocol, with KafkaSource and KafkaSink of rayflink.datastream.connectors.kafka"
    >>> instead_in_sql("kafka")
    """
    name = re.sub("-([0-9.]+|legacy)$", "", connector)
    if name in _UPSERTS_IN_SQL:
        client = _UPSERTS_IN_SQL[name]
        return f"write rows by key with {client} in {_OWN}: an upsert that is repeated changes nothing"
    return INSTEAD[_IN_SQL[name]] if name in _IN_SQL else None


def absent_names(module: str) -> Callable[[str], NoReturn]:
    """Return the `__getattr__` of a module that is absent.

    >>> absent_names("cassandra")("CassandraSink")
    Traceback (most recent call last):
    ...
    ImportError: PyFlink's CassandraSink is not in rayflink: write rows by key with cassandra-driver in a sink of your own (docs/write-a-connector.md): an upsert that is repeated changes nothing

    Args:
        module: its name in PyFlink's package `datastream.connectors`.
    """  # noqa: E501 - the message is one line

    def get(name: str) -> NoReturn:
        if name in _CLASSES[module].split():
            raise ImportError(f"PyFlink's {name} is not in rayflink: {INSTEAD[module]}")
        raise AttributeError(f"module 'rayflink.datastream.connectors.{module}' has no attribute {name!r}")

    return get


def present_or_absent(present: Callable[[str], object]) -> Callable[[str], object]:
    """Return the `__getattr__` of the package: names of absent modules say what to use instead.

    Args:
        present: loads the names that are there.
    """

    def get(name: str) -> object:
        for module, names in _CLASSES.items():
            if name in names.split():
                absent_names(module)(name)
        return present(name)

    return get


__all__ = ["INSTEAD", "absent_names", "instead_in_sql", "present_or_absent"]
