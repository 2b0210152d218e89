"""CSV, under PyFlink's module path."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.common.records.csv_rows import (
        CsvRowDeserializationSchema as CsvRowDeserializationSchema,
        CsvRowSerializationSchema as CsvRowSerializationSchema,
    )
    from rayflink.connectors.formats.csv_schema import (
        CsvBulkWriters as CsvBulkWriters,
        CsvReaderFormat as CsvReaderFormat,
        CsvSchema as CsvSchema,
        CsvSchemaBuilder as CsvSchemaBuilder,
    )
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.common.records.csv_rows": "CsvRowDeserializationSchema CsvRowSerializationSchema",
            "rayflink.connectors.formats.csv_schema": "CsvBulkWriters CsvReaderFormat CsvSchema CsvSchemaBuilder",
        },
    )
