"""PostgreSQL: tables as sources and sinks, their changes, and lookups.

- `postgres_sink`, with `writing`, `staged`, `moving` and `tables`: rows are staged with a checkpoint and moved into the
  table when it is complete; `postgres_changes_sink` does so with columns and changes of rows.
- `postgres_source`, with `scan`, `conditions` and `copying`: a bounded scan in chunks.
- `postgres_cdc_source`, with `chunks`, `log` and what decodes it: rows and then their changes.
- `postgres_lookup`: rows by key.
- `postgres_session`: the connection; `postgres_values` and `postgres_csv_rows`: values in the server's notation.
"""
