"""The peers' programs, each run by an interpreter of its own environment.

`w1_NAME.py` is word count for Bytewax, Pathway and PyFlink; `large_state_flink.py` starts a cluster of Flink for the
jobs with large state, whose programs are in `benchmarks/flink/`. They import what their environment has: the standard
library, the peer, and those modules of `benchmarks/` that need no more.
"""
