"""What all sources and sinks share, under PyFlink's module path."""

from __future__ import annotations

from rayflink.common.commits import CommitRequest
from rayflink.common.delivery_guarantee import DeliveryGuarantee
from rayflink.common.sink import Committer, Sink, SinkWriter, TwoPhaseCommittingSink, UnwritableRecord, WriterContext
from rayflink.common.source import Source

__all__ = [
    "CommitRequest", "Committer", "DeliveryGuarantee", "Sink", "SinkWriter", "Source", "TwoPhaseCommittingSink",
    "UnwritableRecord", "WriterContext",
]  # fmt: skip
