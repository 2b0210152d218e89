"""Benchmarks of DataStream jobs: throughput, latency, start-up, windows and patterns.

Each module `ours_NAME.py` defines the `run` of `python -m benchmarks NAME`, which gets a file or nothing and returns
numbers. Those whose point is keyed state are in `benchmarks/keyed_state/`, those whose point is an outside system in
`benchmarks/connectors/`.
"""
