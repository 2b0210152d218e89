"""Rules of ROW_NUMBER.

`push_filter_into_rank` recognizes the queries, `rank_into_window_rank` and `rank_into_deduplicate` choose an operator
with less state, and `push_projection_through_rank` drops columns. Plans enter and leave.

What the operators do with their rows is in `rayflink.table.runtime.ranks`.
"""
