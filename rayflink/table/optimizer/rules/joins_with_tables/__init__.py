"""Rules for joins of a stream with a table outside of it.

`recognize_lookup_join` asks a table for rows by key, and `recognize_temporal_join` stores its versions. A join as the
query writes it enters, and a node that can be run leaves.

Rules for joins of streams and of whole tables are in `rayflink.table.optimizer.rules`.
"""
