"""Rayflink and its peers, measured on the same files in the same hour; see README.md beside this file.

- `runs/`: how contestants take turns, and what is reported; `inputs/`: what they read.
- `streams/`, `keyed_state/`, `tables/`, `connectors/`, `clusters/`: what is measured, a module `ours_NAME.py` each.
- `peers/` and `flink/`: the same jobs for other engines, in Python and in Java.
- `servers/`: servers on loopback, which the tests start too.

`python -m benchmarks NAME` runs one. Nothing here is part of the package, and nothing here imports `tests/`.
"""
