"""Rewrites of logical plans, one a file; each gives a plan with the same rows.

A rule is a function from a plan to a plan. Its docstring shows a query with its plan without and with the rule,
which a test compares with EXPLAIN; its cases are in tests/table/optimizer/rule_cases.

`rayflink.table.optimizer.phases` has their order. What several rules share, such as taking conditions apart, is
beside that.
"""
