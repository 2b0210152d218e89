"""Change data capture, independent of the database: incremental snapshots, their reader and enumerator, and records.

- `chunks`: parts of a table, the marks of their snapshots, and which changes of the log they contain already.
- `logged_changes`: the changes in the log that are emitted, beyond the snapshots.
- `table_changes`: changes of one table as columns.
- `snapshot_enumeration`: distributes chunks, and then the log.
- `log_thread`: reads a log beside the task.
- `change_reader`: the reader of chunks and of the log.
- `deserialization`: changes as records: Rows with their kinds, or Debezium's JSON.
"""
