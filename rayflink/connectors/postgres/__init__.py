"""The PostgreSQL sink: rows are staged with a checkpoint and moved into the table when it is complete."""
