"""Checkpoint storages, and what they hold: files of snapshots, manifests and the ledger of a job.

`storage` is the contract; `local_storage`, `object_storage` and `memory_storage` implement it, and `storage_schemes`
chooses one by its address. `manifest` says what a checkpoint consists of, `snapshot_files` packs the parts of a
snapshot into files, `ledger` decides which coordinator leads a job and which checkpoints count, `retention` which
files that are not needed any more.

When a checkpoint is taken is not decided here.
"""
