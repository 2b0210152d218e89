"""Tables whose rows are the changes of a table in a database: the connector `postgres-cdc`.

`postgres_cdc` reads the options, under the names of Flink CDC, and makes a source of `rayflink.connectors.postgres`
whose rows have kinds. The definition of a table enters; a source of a changelog leaves, with the changelog mode that
the planner has to know.

Formats that carry changes in messages, such as Debezium's, are in `rayflink.table.connectors.messages`.
"""
