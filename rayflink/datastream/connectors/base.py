"""The parts that all sources and sinks share, under PyFlink's module path."""

from __future__ import annotations

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.common.connector_base.malformed_records import MalformedRecord, MalformedRecords
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.connector_base.sink import (
    Committer,
    CommitterContext,
    GlobalCommitter,
    Sink,
    SinkWriter,
    TwoPhaseCommittingSink,
    UnwritableRecord,
    WriterContext,
)
from rayflink.common.connector_base.source import (
    END,
    PENDING,
    Boundedness,
    EnumeratorContext,
    PendingSplits,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor

__all__ = [
    "END", "PENDING", "Boundedness", "CommitRequest", "Committer", "CommitterContext", "DeliveryGuarantee",
    "EnumeratorContext", "GlobalCommitter",
    "MalformedRecord", "MalformedRecords", "MessageDecoder", "OneByOneReader", "PendingSplits", "ReaderContext", "Sink",
    "SinkWriter", "Source", "SourceReader", "SplitCursor", "SplitEnumerator", "TwoPhaseCommittingSink",
    "UnwritableRecord", "WriterContext",
]  # fmt: skip
