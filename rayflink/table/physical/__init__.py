"""The physical planner: from an optimized logical plan to the steps of a stream program.

It chooses operators of `rayflink.table.runtime`, the partitioning in front of them and their state's identity.
"""
