"""The decisions that follow the failure of a task.

`failover` determines which subtasks restart, `restarts` after which delay, `same_failures` that no restart will help;
`job_restarts` collects the answers for a job. Failures enter; places, times and notices leave. All of it is pure.

Which state the new attempts start from is decided in `restoring`, how a recovery is measured in `recovery_times`.
"""
