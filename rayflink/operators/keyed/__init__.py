"""Operators on keyed streams: rolling aggregations, process functions, broadcast state and sorted batch input.

`keyed_operator` is what they share: the key of each record, the state backend and the snapshots; `keyed_backends`
chooses the backend. `rolling` and `aggregations` keep one value a key, `keyed_process`, `keyed_two_input` and
`keyed_broadcast` call a user's function with state and timers. Batches of one key group range enter, in any order of
keys. Windows, which are keyed as well, have a room of their own; how state is stored is in `rayflink.state`.
"""
