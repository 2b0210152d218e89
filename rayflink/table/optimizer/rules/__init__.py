"""Rewrites of logical plans, one a file; each gives a plan with the same rows.

A rule of the planner is a function that is called with a whole plan and returns a plan: `plan.mapped(change)`
visits the relations of it, and `with_exprs` the expressions of a relation, as in `fold_constants`. A user's rule is
called with each relation instead, and again until it changes nothing more (`rayflink.table.optimizer.user_rules`).

A rule's docstring shows a query with its plan without and with the rule, which a test compares with EXPLAIN; its cases
are in tests/table/optimizer/rule_cases.

`rayflink.table.optimizer.phases` has their order. What several rules share, such as taking conditions apart, or what is
no rule, such as the search for an order of joins, is beside that: this folder and its rooms have rules alone.
"""
