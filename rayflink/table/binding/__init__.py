"""Binds queries: names become columns and functions, and every expression gets a type.

`queries` binds a SELECT with the help of `joins`, `grouping`, `windows`, `numbering` and `laterals`; `expressions`
binds what stands in it; `scope` resolves names. sqlglot's trees, as `rayflink.table.parsing` makes them, enter, with
the catalog; relations of `rayflink.table.plan` leave. Errors name the place in the text and a remedy (`remedies`).
Nothing is optimized here, and no operator is chosen.
"""
