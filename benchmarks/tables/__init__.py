"""Benchmarks of SQL: windows, filters, the queries of Nexmark, keyed tables, and latency.

Each module `ours_NAME.py` defines the `run` of `python -m benchmarks NAME`; what they read is in `benchmarks/inputs/`.
`ours_table_windows.py` is a program of its own.
"""
