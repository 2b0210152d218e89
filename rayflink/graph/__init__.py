"""Stream graphs and job graphs: from the steps of a program to vertices, chains and execution graphs.

Transformations of the API enter and a job graph leaves: operators chained into vertices, edges with their
partitioning, slot sharing and operator ids. `translation` makes the stream graph, `chaining` and `job_graph_builder`
the job graph, `execution_graph` its subtasks and channels; `explain` and `plan_json` print them. All of them are
values. Nothing here runs a job.
"""
