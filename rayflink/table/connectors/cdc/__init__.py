"""Tables whose rows are the changes of a table in a database: `postgres-cdc`, `mysql-cdc`.

- `column_changes`: changes as columns of SQL, with their metadata.
- `postgres_cdc`, `mysql_cdc`: the connectors, with the options of Flink CDC.

The options and columns of a definition enter, and a source of a stream program leaves. How a database is read does not
belong here, but in `rayflink.connectors`.
"""
