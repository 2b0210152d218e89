"""Lookup joins: each row beside the rows of a table outside that its key has at that moment.

`lookup_function` is the contract with tables, `lookup_calls` asks them for the keys of a batch and repeats what fails,
`partial_cache` remembers the rows of keys, and `whole_cache` has all rows of a table, read by `whole_tables`.
`found_rows` are rows in the order of their keys, which `key_numbers` finds. `lookup_join` is the operator: rows enter,
and leave with the columns of what they found. `resolved_updates` follows it where rows change: what was found when a
row came is what goes with it.

The tables themselves are in `rayflink.table.connectors`.
"""
