"""The physical planner: from an optimized logical plan to the steps of a stream program.

It chooses operators of `rayflink.table.runtime`, the partitioning in front of them and their state's identity. The
modules `physical_*` hold one family of relations each; `stream_tables` and `stream_sinks` are the tables that streams
are, and the streams that tables become. Nothing here knows what a batch looks like: that is the runtime's part.
"""
