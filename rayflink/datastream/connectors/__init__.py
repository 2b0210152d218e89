"""Sources and sinks, under PyFlink's module path."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.common.delivery_guarantee import DeliveryGuarantee as DeliveryGuarantee
    from rayflink.common.sink import Sink as Sink
    from rayflink.common.source import Source as Source
    from rayflink.connectors.collection import CollectSink as CollectSink, CollectionSource as CollectionSource
    from rayflink.connectors.csv_files import CsvFileSource as CsvFileSource
    from rayflink.connectors.discard import DiscardingSink as DiscardingSink
    from rayflink.connectors.generator import (
        DataGeneratorSource as DataGeneratorSource,
        NumberSequenceSource as NumberSequenceSource,
    )
    from rayflink.connectors.iteration import IteratorSource as IteratorSource
    from rayflink.connectors.part_files import (
        PartFileSink as PartFileSink,
        csv_file_sink as csv_file_sink,
        text_file_sink as text_file_sink,
    )
    from rayflink.connectors.printing import PrintSink as PrintSink
    from rayflink.connectors.socket_text import SocketTextSource as SocketTextSource
    from rayflink.connectors.text_files import TextFileSource as TextFileSource
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.common.delivery_guarantee": "DeliveryGuarantee",
            "rayflink.common.sink": "Sink",
            "rayflink.common.source": "Source",
            "rayflink.connectors.collection": "CollectSink CollectionSource",
            "rayflink.connectors.csv_files": "CsvFileSource",
            "rayflink.connectors.discard": "DiscardingSink",
            "rayflink.connectors.generator": "DataGeneratorSource NumberSequenceSource",
            "rayflink.connectors.iteration": "IteratorSource",
            "rayflink.connectors.part_files": "PartFileSink csv_file_sink text_file_sink",
            "rayflink.connectors.printing": "PrintSink",
            "rayflink.connectors.socket_text": "SocketTextSource",
            "rayflink.connectors.text_files": "TextFileSource",
        },
    )
