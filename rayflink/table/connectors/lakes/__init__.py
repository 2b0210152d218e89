"""The connectors `delta` and `iceberg`: tables of lakes in SQL.

`delta_tables` and `iceberg_tables` parse the options. `lake_tables` is the source and the sink of both, `lake_columns`
maps types. The tables themselves are read and written by `rayflink.connectors.delta` and `rayflink.connectors.iceberg`.
"""
