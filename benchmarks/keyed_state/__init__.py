"""Benchmarks of keyed state: counts of many keys, state larger than memory, and recovery with it.

`ours_state_count.py` and `ours_state_large.py` measure updates, with `keyed_counts.py` and `state_preload.py`;
`ours_checkpoint_sync.py`, `ours_recovery.py` and `ours_rescale_pause.py` measure checkpoints and pauses of the job of
`large_state.py`. `large_job.py` and `state_large.py` have what ours and the peers have in common.
"""
