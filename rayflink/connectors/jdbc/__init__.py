"""`JdbcSink` with PyFlink's names: a statement of the user's for each record, in batches, on PostgreSQL.

- `jdbc_sink`: the sink and its writer.
- `jdbc_options`: the builders of its options.
- `jdbc_url`: URLs of JDBC, which become connection strings of PostgreSQL's library.

Exactly-once writing, scans and lookups are in `rayflink.connectors.postgres`, tables in
`rayflink.table.connectors.jdbc`.
"""
