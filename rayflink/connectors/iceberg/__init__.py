"""Iceberg tables as a sink and as a source, by the library pyiceberg.

- `iceberg_table`: a table's place in a catalog, its library object and its files.
- `iceberg_partitions`: transforms of partition columns, on columns of Arrow.
- `iceberg_sink`, `iceberg_committing`: writers, and the one snapshot of each checkpoint.
- `iceberg_writing`: Parquet files, described as the table has them.
- `iceberg_compaction`: small files replaced by few.
- `iceberg_plan`, `iceberg_source`: snapshots and what later ones append, as splits.
"""
