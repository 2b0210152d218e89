"""Rules of joins of streams without windows or bounds of time.

`stream_join` makes such a join of one that no other rule has recognized, `multi_join` merges several with a common key,
and `store_by_unique_key` chooses by which columns the rows of the inputs are stored. Plans enter and leave. The rules
of other joins are in the folder above.

What the join does with its rows is in `rayflink.table.runtime.joins`.
"""
