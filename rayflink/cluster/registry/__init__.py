"""The durable memory of a cluster: which jobs it has accepted, and which dispatcher may write.

- `leadership`: an epoch for each dispatcher; a newer one fences the older.
- `job_registry`: an entry for each job, with its program, until the job has ended and its end is noted.
- `counted_storage`: counts what is asked of the storage.

Values enter and leave; nothing here runs a job or knows where one runs.
"""
