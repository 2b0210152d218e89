"""Operators of the Table layer, on columns: no loop of Python goes over rows or keys here.

The rooms are `aggregates` (accumulators and partial rows), `windows`, `joins`, `ranks` (ORDER BY, Top-N,
deduplication), `groups` (GROUP BY over a stream) and `keyed_state` (state in columns). Projections, filters,
constraints, and what waits for mini-batches lie here. Batches of Arrow columns enter and leave, by the contract of
`rayflink.operators`. Which operator a query gets is decided in `rayflink.table.physical`.
"""
