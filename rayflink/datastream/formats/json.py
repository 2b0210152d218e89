"""JSON, under PyFlink's module path; files of JSON lines beside it."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.common.records.json_rows import (
        JsonRowDeserializationSchema as JsonRowDeserializationSchema,
        JsonRowSerializationSchema as JsonRowSerializationSchema,
    )
    from rayflink.connectors.formats.json_files import (
        JsonLinesFormat as JsonLinesFormat,
        json_lines_encoder as json_lines_encoder,
    )
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.common.records.json_rows": "JsonRowDeserializationSchema JsonRowSerializationSchema",
            "rayflink.connectors.formats.json_files": "JsonLinesFormat json_lines_encoder",
        },
    )
