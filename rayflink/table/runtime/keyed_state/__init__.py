"""Keyed state in columns: keys by number, in pages and blocks, with a time to live and snapshots.

`keyed_table` is the table of rows by key that are updated in place, `stored_table` takes and restores its snapshots,
and `table_operator` is what all operators with such tables do. `keyed_multiset` has keys of many rows each, which
`secondary_index` finds, in `extents` of a pool. `key_index` finds the number of a key, `key_rows` has the keys by
number, `seen_keys` the set of keys seen so far, and `comparable_keys` the form in which they are compared.
`waiting_rows` has rows that are not due yet. `frame_memory` puts columns into files when memory is short, and
`frame_snapshots` writes them by key group. Columns of keys enter; row numbers and bytes of snapshots leave.

State of single values is in `rayflink.state`.
"""
