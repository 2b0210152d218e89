"""Aggregates in columns: accumulators, partial rows, how they merge, and their results."""
