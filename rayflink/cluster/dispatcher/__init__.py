"""The dispatcher: accepts jobs, keeps their registry, looks after them, brings them back, archives their ends.

- `dispatcher`: leads, and answers readers. Its duties are classes over the same `dispatcher_parts`:
  `submissions`, `supervision` (the jobs that there should be, compared with those that run),
  `cancellations`, `job_renewals` with `renewal` (jobs go on in new processes).
- `job_table`: the jobs that have not ended. `job_starts`: each with a number. `absent_jobs`: those brought back.
- `start_threads`: a few jobs start at a time, and one that hangs holds up no other.
- `job_ends`, `ended_jobs`: what is noted, listed and archived of ends. `foreign_jobs`: jobs of programs themselves.
- `job_restarts`, `restarted_submission`: jobs that have ended are started again, with other options and subtasks.
- `job_documents`: jobs of which no runner has a status. `dispatcher_log`: the log of the dispatcher's process.

Submissions and requests enter, jobs leave. It runs in a process of its own, or in a detached actor of Ray.

How a job runs does not belong here, nor how a request arrives.
"""
