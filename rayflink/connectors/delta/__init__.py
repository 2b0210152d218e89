"""Delta tables as a sink and as a source, by the library deltalake.

- `delta_table`: a table's place, its library object and its files.
- `delta_values`: values of partitions and statistics, as Delta writes them.
- `delta_sink`, `delta_committing`: Parquet files, and the one commit of each checkpoint.
- `delta_plan`, `delta_source`: snapshots and new versions as splits.
"""
