"""The session cluster: a dispatcher that takes jobs, looks after them, and answers Flink's REST interface about them.

- `jobs`: a job as others see it: what can be read of it, and what can be asked of it.

Job graphs and requests enter, answers leave. How a job runs is decided in `rayflink.actors`; how HTTP is served, in
`rayflink.serving`.
"""
