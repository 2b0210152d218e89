"""Sources and sinks for programs, under PyFlink's module path.

Each module re-exports one outside system of `rayflink.connectors` and loads it on first use: `kafka`, `file_system`,
`jdbc`, `postgres`, `postgres_cdc`, `mysql_cdc`, `redis`, `http`, `delta`, `iceberg`, `hybrid_source`, `number_seq`;
`base` has what they share. `absent_connectors` answers an import of a connector that PyFlink has and rayflink has not
with what to use instead. No code of a connector belongs here.
"""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee as DeliveryGuarantee
    from rayflink.common.connector_base.commits import CommitRequest as CommitRequest
    from rayflink.common.connector_base.sink import (
        Committer as Committer,
        Sink as Sink,
        SinkWriter as SinkWriter,
        TwoPhaseCommittingSink as TwoPhaseCommittingSink,
        UnwritableRecord as UnwritableRecord,
        WriterContext as WriterContext,
    )
    from rayflink.common.connector_base.source import Source as Source
    from rayflink.connectors.collection import CollectSink as CollectSink, CollectionSource as CollectionSource
    from rayflink.connectors.files.buckets import BucketAssigner as BucketAssigner
    from rayflink.connectors.formats.csv_files import CsvFileSource as CsvFileSource
    from rayflink.connectors.formats.csv_writing import (
        csv_file_sink as csv_file_sink,
        text_file_sink as text_file_sink,
    )
    from rayflink.connectors.discard import DiscardingSink as DiscardingSink
    from rayflink.connectors.files.file_enumeration import (
        FileEnumeratorProvider as FileEnumeratorProvider,
        FileSplitAssignerProvider as FileSplitAssignerProvider,
    )
    from rayflink.connectors.files.file_sink import (
        FileSink as FileSink,
        OutputFileConfig as OutputFileConfig,
        StreamingFileSink as StreamingFileSink,
    )
    from rayflink.connectors.files.file_source import (
        FileSource as FileSource,
        FileSourceBuilder as FileSourceBuilder,
        StreamFormat as StreamFormat,
    )
    from rayflink.connectors.generator import (
        DataGeneratorSource as DataGeneratorSource,
        NumberSequenceSource as NumberSequenceSource,
    )
    from rayflink.connectors.hybrid_source import HybridSource as HybridSource
    from rayflink.connectors.iteration import IteratorSource as IteratorSource
    from rayflink.connectors.jdbc.jdbc_options import (
        JdbcConnectionOptions as JdbcConnectionOptions,
        JdbcExecutionOptions as JdbcExecutionOptions,
    )
    from rayflink.connectors.jdbc.jdbc_sink import JdbcSink as JdbcSink
    from rayflink.connectors.kafka.flink_kafka_consumer import FlinkKafkaConsumer as FlinkKafkaConsumer
    from rayflink.connectors.kafka.flink_kafka_producer import (
        FlinkKafkaProducer as FlinkKafkaProducer,
        Semantic as Semantic,
    )
    from rayflink.connectors.kafka.kafka_records import (
        KafkaRecordDeserializationSchema as KafkaRecordDeserializationSchema,
    )
    from rayflink.connectors.kafka.kafka_source import KafkaSource as KafkaSource
    from rayflink.connectors.printing import PrintSink as PrintSink
    from rayflink.connectors.rabbitmq.rabbitmq_connection import RMQConnectionConfig as RMQConnectionConfig
    from rayflink.connectors.rabbitmq.rabbitmq_sink import RMQSink as RMQSink
    from rayflink.connectors.rabbitmq.rabbitmq_source import RMQSource as RMQSource
    from rayflink.connectors.files.rolling import RollingPolicy as RollingPolicy
    from rayflink.connectors.socket_text import SocketTextSource as SocketTextSource
    from rayflink.connectors.formats.text_files import TextFileSource as TextFileSource
else:
    from .absent_connectors import present_or_absent

    _present, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.common.connector_base.delivery_guarantee": "DeliveryGuarantee",
            "rayflink.common.connector_base.commits": "CommitRequest",
            "rayflink.common.connector_base.sink": (
                "Committer Sink SinkWriter TwoPhaseCommittingSink UnwritableRecord WriterContext"
            ),
            "rayflink.common.connector_base.source": "Source",
            "rayflink.connectors.collection": "CollectSink CollectionSource",
            "rayflink.connectors.files.buckets": "BucketAssigner",
            "rayflink.connectors.formats.csv_files": "CsvFileSource",
            "rayflink.connectors.formats.csv_writing": "csv_file_sink text_file_sink",
            "rayflink.connectors.discard": "DiscardingSink",
            "rayflink.connectors.files.file_enumeration": "FileEnumeratorProvider FileSplitAssignerProvider",
            "rayflink.connectors.files.file_sink": "FileSink OutputFileConfig StreamingFileSink",
            "rayflink.connectors.files.file_source": "FileSource FileSourceBuilder StreamFormat",
            "rayflink.connectors.generator": "DataGeneratorSource NumberSequenceSource",
            "rayflink.connectors.hybrid_source": "HybridSource",
            "rayflink.connectors.iteration": "IteratorSource",
            "rayflink.connectors.jdbc.jdbc_options": "JdbcConnectionOptions JdbcExecutionOptions",
            "rayflink.connectors.jdbc.jdbc_sink": "JdbcSink",
            "rayflink.connectors.kafka.flink_kafka_consumer": "FlinkKafkaConsumer",
            "rayflink.connectors.kafka.flink_kafka_producer": "FlinkKafkaProducer Semantic",
            "rayflink.connectors.kafka.kafka_records": "KafkaRecordDeserializationSchema",
            "rayflink.connectors.kafka.kafka_source": "KafkaSource",
            "rayflink.connectors.printing": "PrintSink",
            "rayflink.connectors.rabbitmq.rabbitmq_connection": "RMQConnectionConfig",
            "rayflink.connectors.rabbitmq.rabbitmq_sink": "RMQSink",
            "rayflink.connectors.rabbitmq.rabbitmq_source": "RMQSource",
            "rayflink.connectors.files.rolling": "RollingPolicy",
            "rayflink.connectors.socket_text": "SocketTextSource",
            "rayflink.connectors.formats.text_files": "TextFileSource",
        },
    )
    __getattr__ = present_or_absent(_present)
