"""CAST and TRY_CAST: which types can become which, for single values, collections and times.

`casts` has the table of all pairs of types and the kernel of each; `number_casts` narrows numbers as Java does,
`nested_casts` goes through arrays, maps and rows. A column and a type enter; a column leaves, and for CAST the rows
that cannot be converted are errors, for TRY_CAST nulls.

The strings of times are parsed in `rayflink.table.functions.times`.
"""
