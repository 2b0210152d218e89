"""MySQL and MariaDB: the rows of tables and their changes, from the binary log.

- `mysql_cdc_source`: the source and its builder; `mysql_cdc_preparation`: what it checks and prepares on a server.
- `mysql_cdc_tables` and `mysql_values`: tables as the server describes them, and values as columns of Arrow.
- `mysql_chunks`: chunks of the snapshot; `snapshot_positions`: the exact position in the log that a snapshot is of.
- `binlog_positions`, `binlog_statements`: positions, sets of GTIDs, and statements in the log, without a server.
- `binlog_events` and `binlog_stream`: the events, by the library python-mysql-replication; `binlog_rows` and
  `binlog_values`: the rows in them, by columns; `logged_table` and `mysql_log`: the changes of captured tables.
- `mysql_session`: the connection for everything else.
"""
