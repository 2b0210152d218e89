"""The runner on Ray: the only folder, with `driver` below it, that imports Ray.

`coordinator_actor` hosts the job master of one job and `ray_coordinator` carries out its commands. `ray_slots` reserves
slots, and `slots` are their processes. `ray_nodes` and `ray_deaths` find out what died. `driver` is what runs in the
user's program.

Decisions do not belong here: they are made in `actors.job` and `actors.checkpoints`, where they can be tested
without a cluster.
"""
