"""Joins on columns: of whole tables, of windows, of intervals of time, of streams, and with a broadcast side.

`window_join`, `interval_join`, `stream_join`, `multi_join`, `mini_batch_join` and `broadcast_join` are the operators.
`stored_side` has the rows of a side of a join of streams, `join_changes` computes the changes of its result,
`multi_join_rows` puts rows of several inputs together, and `folded_changes` leaves out what comes and goes.
`join_pairs` finds rows with equal keys in blocks of a bounded size, `join_rows` builds the rows of the result,
`timed_rows` stores one side by time, and `join_snapshots` has both sides by key group. Inputs of columns enter; the
rows of the result leave.

Which join a query gets is decided in `rayflink.table.physical`.
"""
