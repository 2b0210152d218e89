"""Avro, under PyFlink's module path; needs `pip install 'rayflink[avro]'`. Schemas of a registry are beside it."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.avro.avro_schema import AvroSchema as AvroSchema
    from rayflink.connectors.avro.container_files import (
        AvroBulkWriters as AvroBulkWriters,
        AvroFormat as AvroFormat,
        AvroInputFormat as AvroInputFormat,
        AvroRecordFormat as AvroRecordFormat,
    )
    from rayflink.connectors.avro.generic_type import GenericRecordAvroTypeInfo as GenericRecordAvroTypeInfo
    from rayflink.connectors.avro.registry_client import RegistryOptions as RegistryOptions
    from rayflink.connectors.avro.registry_messages import (
        ConfluentRegistryAvroDeserializationSchema as ConfluentRegistryAvroDeserializationSchema,
        ConfluentRegistryAvroSerializationSchema as ConfluentRegistryAvroSerializationSchema,
    )
    from rayflink.connectors.avro.row_schemas import (
        AvroRowDeserializationSchema as AvroRowDeserializationSchema,
        AvroRowSerializationSchema as AvroRowSerializationSchema,
    )
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.avro.avro_schema": "AvroSchema",
            "rayflink.connectors.avro.container_files": "AvroBulkWriters AvroFormat AvroInputFormat AvroRecordFormat",
            "rayflink.connectors.avro.generic_type": "GenericRecordAvroTypeInfo",
            "rayflink.connectors.avro.registry_client": "RegistryOptions",
            "rayflink.connectors.avro.registry_messages": (
                "ConfluentRegistryAvroDeserializationSchema ConfluentRegistryAvroSerializationSchema"
            ),
            "rayflink.connectors.avro.row_schemas": "AvroRowDeserializationSchema AvroRowSerializationSchema",
        },
    )
