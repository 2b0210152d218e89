"""The decisions about one job: deployment, failover, restarts, rescaling, restore and its end.

`job_master` takes events (a task has failed, a checkpoint was acknowledged, the user cancels) and gives commands.
The other modules hold one decision each: `failover` which subtasks restart, `restarts` when, `deployment` who
reads from whom, `restoring` which state each attempt starts from, `rescaled_graph` whether a new parallelism is
possible. Nearly all of it is pure, so the simulator runs it without threads or files.

Nothing here talks to Ray or to a task: a runner does, from `local` or `on_ray`.
"""
