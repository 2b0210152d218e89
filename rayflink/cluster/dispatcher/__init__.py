"""The dispatcher: accepts jobs, keeps their registry, looks after them, brings them back, archives their ends.

- `dispatcher`: which jobs there should be, compared with those that run.
- `job_starts`: each with a number. `absent_jobs`, `renewal`: jobs that are brought back, or go on in new processes.
- `job_ends`, `ended_jobs`: what is noted, listed and archived of ends. `foreign_jobs`: jobs of programs themselves.
- `job_restarts`, `restarted_submission`: jobs that have ended are started again, with other options and subtasks.
- `job_documents`: jobs of which no runner has a status. `dispatcher_log`: the log of the dispatcher's process.

Submissions and requests enter, jobs leave. It runs in a process of its own, or in a detached actor of Ray.

How a job runs does not belong here, nor how a request arrives.
"""
