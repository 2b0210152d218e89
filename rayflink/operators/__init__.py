"""Operators: elements in, elements out, state in between.

`base` is the contract, `capabilities` what only some operators can, and `chain` runs several operators as one.
Stateless operators, sources and sinks lie here; the rooms are `keyed` (reduce, process functions, timers), `windows`,
`event_time` (timestamps and watermarks) and `async_io` (requests answered outside).

An operator knows no channel, no actor and no clock of its own: a task hands it batches and asks it for snapshots.
Operators of SQL are in `rayflink.table.runtime`.
"""
