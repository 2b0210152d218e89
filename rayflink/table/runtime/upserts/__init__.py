"""Rows that replace others by key: the last row of each key of a stream, and the changes that it goes through.

`last_rows` computes the changes of a batch over a keyed table, and `last_row_operators` has the operator; `top_rows`
and `top_operator` do the same for the first rows of each key in an order, and `best_rows` remembers those of hot keys.
Rows with their kinds enter; complete changes leave: insertions, updates with the row before them, and deletions.

First rows of keys that never change are in `rayflink.table.runtime.ranks`.
"""
