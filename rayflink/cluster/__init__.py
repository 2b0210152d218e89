"""The session cluster: a dispatcher that takes jobs, looks after them, and answers Flink's REST interface about them.

- `jobs`: a job as others see it: what can be read of it, and what can be asked of it.
- `registry`: the jobs that were accepted, in storage, and which dispatcher may write.
- `archives`: jobs that have ended, in storage, also after the cluster is gone.
- `runners`: start jobs on Ray or in this process, and find them again.
- `dispatcher`: compares the jobs that there should be with those that run.
- `rest`: Flink's requests about all of that; `pages`: the dashboard, which asks them.
- `cluster_server`: puts these together as one server; `ray_cluster`: the same in an actor of Ray;
  `history_server`: archives alone.

Job graphs and requests enter, answers leave. How a job runs is decided in `rayflink.actors`; how HTTP is served, in
`rayflink.serving`.
"""
