"""Avro: schemas, datums decoded to columns and records, files, and schemas in a registry; needs `rayflink[avro]`.

- `avro_schema`: schemas, as users write them, and as trees whose names are resolved.
- `arrow_mapping`: Arrow's types for Avro's.
- `fitted_columns`: columns as they were decoded, fitted to the types that are wanted.
- `datum_columns`: many datums decoded to columns at once.
- `datum_encoding`: columns encoded to datums.
"""
