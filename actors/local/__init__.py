"""The runner of a whole job in one thread of the program's own process.

`in_process` drives the job master and the tasks by turns and hands over their messages in memory; tests and small
programs use it. `task_executor` creates, steps and drops the tasks of one process; the simulator uses it too.
`local_runs` has what a local job needs beside its tasks: its rows, its restarts and its loggers. Nothing here imports
Ray.
"""
