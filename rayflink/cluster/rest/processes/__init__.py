"""Requests about processes: those that run tasks, which Flink calls task managers, and the dispatcher's own.

- `task_manager_endpoints`, `job_manager_endpoints`: lists, logs, metrics, threads of the two.
- `profiles`, `flame_graphs`: where threads spend their time, as pages and as trees (`flame_tree`).
- `process_endpoints`: all of them as one topic; `process_answers`: a process in Flink's words.

`ClusterProcesses` and the dispatcher's own files enter, answers leave. How a process is looked into is decided below.
"""
