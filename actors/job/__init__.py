"""The decisions about one job: deployment, failover, restarts, rescaling, restore and its end.

`job_master` takes events (a task has failed, a checkpoint was acknowledged, the user cancels) and gives commands. What
an event says about its attempt it decides itself; what follows for the job is in `job_scheduler`, from the request for
slots to the end, and `job_lifecycle` has the status with its legal moves. The other modules hold one decision each:
`failures` which subtasks restart and when, `deployment` who reads from whom, `restoring` which state each
attempt starts from, `job_sources` which splits a reader gets, `job_rescale` when other parallelisms take over.
`job_description` has the job as plain data. Nearly all of it is pure: the simulator runs it without threads or files.

Nothing here talks to Ray or to a task: a runner does, from `local` or `on_ray`.
"""
