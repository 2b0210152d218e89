"""The connector `jdbc`: tables of PostgreSQL, read as a bounded scan and written by key, with Flink's options.

`jdbc_tables` reads the options and makes the scan, with the columns and conditions that the planner pushes into it,
or the sink, which updates by the primary key or appends. The definition of a table enters; sources and sinks of
`rayflink.connectors.postgres` leave.

`JdbcSink` of stream programs is in `rayflink.connectors.jdbc`.
"""
