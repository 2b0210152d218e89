"""The kinds of streams and what can be done with each: keyed, windowed, joined, connected, broadcast, cached.

Each method adds a transformation to the graph of its environment and gives the next stream. User code gets these
classes from `rayflink.datastream`; the operators behind them are in `rayflink.operators`. `stream_builder` is for other
front ends, which choose the operators themselves.
"""
