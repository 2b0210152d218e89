"""The connector `jdbc`: tables of PostgreSQL, read as a bounded scan and written by key, with Flink's options."""
