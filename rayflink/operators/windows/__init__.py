"""Windows on keyed streams: assigners, triggers, evictors, contents, and the operators that fire them.

`window_operator` is the general one; `pane_windows`, `session_operator` and `count_windows` do the same work faster
for common cases, with equal results. Joins by window and by interval are here as well. Windows of SQL are in
`rayflink.table.runtime.windows`.
"""
