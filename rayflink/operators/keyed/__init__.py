"""Operators on keyed streams: rolling aggregations, process functions, broadcast state and sorted batch input.

`keyed_operator` is what they share: the key of each record, the state backend and the snapshots. Windows, which
are keyed as well, have a room of their own.
"""
