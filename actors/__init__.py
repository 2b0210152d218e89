"""The runtime: jobs, their tasks, and the exchange of records between them.

Rooms, each of which imports only those above it:

- `messages`: values that the coordinator and the tasks of a job send each other.
- `exchange`: channels between tasks, with credit, alignment and the wire format.
- `task`: one subtask, stepped by a runner, with its half of each checkpoint.
- `checkpoints`: the coordinator's half of a checkpoint.
- `job`: the job master, which decides what happens to a job.
- `local` and `on_ray`: the two runners, which carry out what the job master decides.

A job graph enters; reports, results and files of checkpoints leave. Operators and state are not here: a task
drives them through `rayflink.operators` and `rayflink.state`. Only `on_ray` imports Ray.
"""
