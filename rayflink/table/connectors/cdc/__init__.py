"""Tables whose rows are the changes of a table in a database: `postgres-cdc`."""
