"""Benchmarks of SQL: windows, filters, the queries of Nexmark, keyed tables, and latency.

Each module `ours_NAME.py` defines the `run` of `python -m benchmarks NAME`, which gets a file or nothing and returns
numbers; what they read is in `benchmarks/inputs/`. `ours_table_windows.py` is a program of its own. The operators of
SQL are measured here in whole jobs, alone in `ours_hot_key.py` and `ours_multi_join.py`.
"""
