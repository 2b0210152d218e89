"""Rewrites of logical plans, one a file; each gives a plan with the same rows.

`rayflink.table.optimizer.phases` has their order.
"""
