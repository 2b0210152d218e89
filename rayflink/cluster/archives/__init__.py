"""Jobs that have ended: their last status, plan, checkpoints and exceptions, in storage.

- `archive_store`: the archives of one folder, a file for each job, written once.
- `archive_writer`: writes them in a thread, again where the folder cannot be reached.
- `archived_jobs`: the jobs of several folders as `ClusterJobs`, with bounded memory; what expires is deleted.
- `archive_folders`: those that the options name.

An ended job enters, a `JobView` of it leaves, also in another process and after the cluster is gone. The history
server reads nothing else.

Jobs that run do not belong here.
"""
