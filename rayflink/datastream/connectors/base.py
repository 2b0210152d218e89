"""The parts that all sources and sinks share, under PyFlink's module path."""

from __future__ import annotations

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.common.connector_base.malformed_records import MalformedRecord, MalformedRecords
from rayflink.common.connector_base.sink import (
    Committer,
    Sink,
    SinkWriter,
    TwoPhaseCommittingSink,
    UnwritableRecord,
    WriterContext,
)
from rayflink.common.connector_base.source import Source

__all__ = [
    "CommitRequest", "Committer", "DeliveryGuarantee", "MalformedRecord", "MalformedRecords", "Sink", "SinkWriter",
    "Source", "TwoPhaseCommittingSink", "UnwritableRecord", "WriterContext",
]  # fmt: skip
