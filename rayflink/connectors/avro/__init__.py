"""Avro: schemas, datums decoded to columns and records, files, and schemas in a registry; needs `rayflink[avro]`.

- `avro_schema`: schemas, as users write them, and as trees whose names are resolved.
- `arrow_mapping`: Arrow's types for Avro's.
- `fitted_columns`: columns as they were decoded, fitted to the types that are wanted.
- `datum_columns`: many datums decoded to columns at once.
- `datum_encoding`: columns encoded to datums.
- `datum_records`: datums as Python objects.
- `generic_type`: the type of records that are dicts.
- `registry_client`: a client of a schema registry.
- `schema_references`: schemas of a registry that refer to types of others.
- `registry_messages`: messages with the id of their schema before the datum.
- `container_blocks`, `container_files`: Avro files, read and written as columns and records.
- `row_schemas`: datums as `Row` objects.
- `avro_parquet`: Parquet files with the columns of an Avro schema.
"""
