"""Parses text to statements: Flink's SQL on sqlglot's parser.

`statement_parser` reads what a statement begins with, `table_parser` definitions of tables, `dialect` queries and
expressions; `hints`, `type_names` and `places` read parts of them. `known_parts`, `grammar` and `foreign_clauses`
refuse what has no meaning here, with its place and a remedy. Text enters; `statements` with sqlglot's trees leave.

Names are not resolved here, but in `rayflink.table.binding`.
"""
