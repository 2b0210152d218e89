"""Aggregates in columns: accumulators, partial rows, how they merge, and their results.

`aggregates` lists SQL's functions, `accumulators` has their state with one row a group, and `user_accumulators` that of
the user's own functions, which `own_aggregates` opens and closes. `reductions` computes it by group (`grouping`),
`partial_aggregates` carries it with its keys, and `aggregate_results` makes the values that users see. Columns enter
and leave; nothing here has time or state of its own.

The operators that use them are in `rayflink.table.runtime.windows` and `rayflink.table.runtime.ranks`.
"""
