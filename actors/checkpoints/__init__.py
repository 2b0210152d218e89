"""The coordinator's half of checkpoints: when one begins, when it is complete, and which are retained.

`coordinator` takes events and the time and gives commands: it begins checkpoints, and answers the job and its clients.
Those under way are in `pending_checkpoints`, which completes and aborts them; `pending` is one of them. `timing`
decides when the next begins, `failures` how many may fail, `cleanup` which files are deleted; `completed` are the
checkpoints to restore from. `files` and `storage_work` carry out what is decided about the checkpoint storage;
`history` keeps statistics under the names of Flink's REST API.

What a task does at a barrier is in `actors.task`; what a file of a checkpoint contains is in `rayflink.state`.
"""
