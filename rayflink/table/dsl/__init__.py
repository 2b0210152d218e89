"""Expressions as programs write them: each builds the tree that the parser would make of the text of SQL.

`expression_text` is the tree of an expression that is not bound to a table; `numbers`, `strings`, `times`, `json`,
`collections`, `aggregates` and `row_functions` add its methods by family; `selecting` expands column choices;
`orders` has ORDER BY and LIMIT; `rendering` writes an expression as SQL; `grouped_tables` are tables whose rows are
grouped and not aggregated yet.
Calls of a program enter; trees for `rayflink.table.binding` leave.

What a function computes, and which types it takes, is declared in `rayflink.table.functions`.
"""
