"""Window aggregation on columns: tumbling, hopping, cumulating and session windows, in one phase or two.

Rows become partial rows of slices (`slicing`, `local_phase`); `slice_store` merges them and `sliced_windows` emits a
window from its slices when its time has come. Sessions (`session_store`) merge where they meet.
"""
