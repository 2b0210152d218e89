"""The contract of connectors: sources, splits, readers, sinks, writers and committers.

`source` and `sink` are the interfaces that a connector implements; `split_reader` implements a reader for sources
whose splits are read one after the other. Connectors themselves are in `rayflink.connectors`, and the operators that
drive them in `rayflink.operators`.
"""
