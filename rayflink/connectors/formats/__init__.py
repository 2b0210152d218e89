"""File formats: how CSV, JSON, Parquet, ORC, Arrow and text files are read and written.

A format reads a part of a file as records or columns, and writes records to an open file. Which files are read, and
when a written file becomes visible, is decided in `rayflink.connectors.files`. Formats of messages in SQL are in
`rayflink.table.connectors.messages`, and Avro has a room of its own, `rayflink.connectors.avro`.
"""
