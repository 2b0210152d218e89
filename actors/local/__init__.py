"""The runner of a whole job in one thread of the program's own process.

`in_process` drives the job master and the tasks by turns and hands over their messages in memory. Tests, small
programs and the simulator use it. Nothing here imports Ray.
"""
