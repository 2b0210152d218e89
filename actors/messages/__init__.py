"""Values that the coordinator and the tasks of a job send each other, and the options that both read.

Everything here is a frozen value or an enum: it is compared whole, pickled, and holds no behaviour beyond that.
`messages` go between coordinator and tasks, `commands` from the decisions of a job to the runner that carries
them out. `states` has the legal moves of jobs and executions, `scheduling` the placement of subtasks in slots.

Nothing here opens a file, reads a clock or imports another room of the runtime.
"""
