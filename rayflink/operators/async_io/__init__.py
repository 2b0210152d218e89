"""Operators whose requests are answered outside: coroutines and pools of worker processes.

`async_operator` bounds, keeps, replays and emits requests in order or as they are answered (`request_queue`);
`async_wait` calls coroutines, `pooled_batches` calls workers. What was requested and not answered is in the
snapshot. Records enter as for every operator; answers enter from other threads, and wake the task. Which processes
the workers are is decided by the runner: an operator only asks its context for one.
"""
