"""Operators whose requests are answered outside: coroutines and pools of worker processes.

`async_operator` bounds, keeps, replays and emits requests in order or as they are answered (`request_queue`);
`async_wait` calls coroutines, `pooled_batches` calls workers. What was requested and not answered is in the snapshot.
"""
