"""The past of a job, which outlives its coordinator: failures, rescalings, decisions of the autoscaler, counts.

`job_history` is the whole as a value, and as bytes of a bounded size; `rescale_history` the changes of parallelism.
`history_files` has the bytes beside the checkpoints of the job, and `history_writer` writes them in a thread of its
own, so that no decision and no checkpoint waits for them. A coordinator that takes over reads them once.

What a job starts from is not here: that is decided by the ledger alone, and a job without a history starts the same.
"""
