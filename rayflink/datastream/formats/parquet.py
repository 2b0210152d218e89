"""Parquet, under PyFlink's module path."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.avro.avro_parquet import (
        AvroParquetReaders as AvroParquetReaders,
        AvroParquetWriters as AvroParquetWriters,
    )
    from rayflink.connectors.formats.parquet_files import (
        ParquetBulkWriters as ParquetBulkWriters,
        ParquetColumnarRowInputFormat as ParquetColumnarRowInputFormat,
        ParquetFormat as ParquetFormat,
    )
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.avro.avro_parquet": "AvroParquetReaders AvroParquetWriters",
            "rayflink.connectors.formats.parquet_files": (
                "ParquetBulkWriters ParquetColumnarRowInputFormat ParquetFormat"
            ),
        },
    )
