"""Conversions between tables and what lies outside: streams, Arrow tables, Python values and printed rows.

`arrow_columns` brings foreign columns into the types of tables, `inferred_types` finds the types of a program's rows,
and `element_columns` makes columns of them; `frame_columns` does so of a DataFrame of pandas.
`python_values` and `column_values` convert what functions take and give,
`object_attributes` says which attributes of an object are fields.
`row_types` finds the type of a stream's records, and `row_format` writes values as Flink's client prints them.
Columns and values enter and leave; every function here is pure.

CAST between types of SQL is in `rayflink.table.functions.casts`, the text of files in `rayflink.table.connectors`.
"""
