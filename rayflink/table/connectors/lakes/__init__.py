"""The connectors `delta` and `iceberg`: tables of lakes in SQL.

`delta_tables` and `iceberg_tables` parse the options. `lake_tables` is the source and the sink of both,
`lake_columns` maps types. Definitions of tables enter; sources and sinks leave. The tables themselves are read and
written by `rayflink.connectors.delta` and `rayflink.connectors.iceberg`; what both formats share is in
`rayflink.connectors.lakes`.
"""
