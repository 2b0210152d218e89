"""The coordinator's half of checkpoints: when one begins, when it is complete, and which are kept.

`coordinator` takes events and the time and gives commands; `pending` is a checkpoint under way, `completed` the
ones to restore from, `timing` when the next begins, `failures` how many may fail. `files` and `storage_work`
carry out what it decides about the checkpoint storage; `history` keeps statistics under the names of Flink's
REST API.

What a task does at a barrier is in `actors.task`; what a file of a checkpoint contains is in `rayflink.state`.
"""
