"""Keyed state, operator state, timers, snapshots, and the storages that checkpoints are written to.

- `keys`: which values may be keys, their bytes, their hash and their key group.
- `classes`: names, fields and pickles of the classes that stored bytes refer to.
- `schema`: values to bytes and back, and state whose classes have changed since.
- `rocksdb`: the backend for state that is larger than memory; `memory` is the one that holds objects.
- `storage`: folders, object stores and memory as places for checkpoints, with manifest and ledger.

`backend` is the contract of both backends and `handles` what user code sees. Snapshots enter and leave as values
(`snapshots`). State knows no operator, no task and no job: it is the lowest storey, and imports nothing of rayflink.
"""
