"""A job of a cluster as others see it: what can be read of it, and what can be asked of it.

- `cluster_job`: the jobs that the REST interface and the dashboard are written against.
- `cluster_process`: the processes that run tasks, with their logs, threads and profiles.
- `recent_archives`: jobs that have ended and were read last.
- `job_figures`, `hot_keys`, `findings`, `checkpoint_phases`, `state_sizes`: what people see of a job, as pure
  functions.

Nothing here knows where a job runs: runners implement the protocols, archives implement the part that only reads.
"""
