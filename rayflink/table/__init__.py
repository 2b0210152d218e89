"""The Table API and SQL: one more way to write a stream program. See docs/sql.md."""
