"""Records to nowhere."""

from __future__ import annotations

from rayflink.common.connector_base.sink import Sink, SinkWriter, WriterContext
from rayflink.common.records.batches import Batch


class DiscardingSink(Sink):
    """Takes records and forgets them."""

    name = "Sink: Discard"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return _DiscardingWriter()


class _DiscardingWriter(SinkWriter):
    def write(self, batch: Batch) -> None:
        pass

    def flush(self, end_of_input: bool) -> None:
        pass

    def close(self) -> None:
        pass
