"""One subtask of a job: its mailbox, its chain of operators, and its half of each checkpoint.

`task` is what a runner calls: a step takes the mails first, then a turn of `data_loop`, which works one slice of input.
`task_lifecycle` has the phases of a task and their legal moves. `wiring` builds it from a deployment. `services` is
what the process lends it: clocks, memory, folders. `task_checkpoints` takes snapshots when `exchange.alignment` says
so, forwards barriers and reports; `final_checkpoint` decides when a task whose input has ended may finish.

Messages and envelopes enter and leave as values; a runner delivers them. A task has no thread, no actor and no
clock of its own, so that the same code runs on Ray, in one process and in the simulator.
"""
