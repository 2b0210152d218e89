"""The formats of files and messages for programs, under PyFlink's module paths: csv, json, parquet, orc, avro.

`arrow` is rayflink's own. Each module re-exports classes and loads them on first use: formats of files from
`rayflink.connectors.formats` and `rayflink.connectors.avro`, and schemas that turn one message into a record and
back. Schemas enter a source or sink through `rayflink.datastream.connectors`. No code that reads or writes belongs
here; formats of tables are chosen by name in `rayflink.table.connectors`.
"""
