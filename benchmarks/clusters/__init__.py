"""Benchmarks of session clusters: a dispatcher under load, and how it scales jobs.

Each module `ours_NAME.py` defines the `run` of `python -m benchmarks NAME`, which gets nothing and returns numbers.

How fast a job runs is not measured here.
"""
