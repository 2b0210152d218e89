"""The autoscaler of a job: from what its tasks report to the parallelisms that it wants, and the reasons. Pure.

`autoscaler` is called by the job master at each tick. It takes a sample of the metrics (`figures`), which a
`MetricWindow` holds; `evaluation` derives true rates, target rates and lag; `vertex_scaling` finds the parallelism of
a vertex, and `job_scaling` what changes together, and what forbids it. A decision becomes a request like that of a
user (`RescaleRequested`), and is remembered in `decisions`; `descriptions` has all of it as plain data, and
`autoscaler_metrics` as metrics.

Nothing here reads a clock, starts a thread or knows Ray.

Source: Kalavri et al., Three steps is all you need (DS2); apache/flink-kubernetes-operator, flink-autoscaler.
"""
