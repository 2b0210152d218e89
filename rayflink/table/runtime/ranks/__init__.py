"""Rows in an order: ORDER BY, LIMIT, Top-N and deduplication, for streams, windows and whole tables.

`sorting`, `bounded_rank` and `limits` are for whole tables, `window_rank` for windows, `first_rows` and
`earliest_rows` for streams without an end. `ordering` turns values into numbers in the same order, `sorted_rows`
sorts within a memory budget, `ranking` merges the first rows of each key. Batches of columns enter and leave.

Which of them a query gets is decided in `rayflink.table.physical`.
"""
