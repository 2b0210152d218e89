"""The logical plan: a frozen tree of relations and typed expressions.

`logical` has the relations, `plan_nodes` the closed union of their classes, `typed` the expressions, `changelog` the
kinds of changes that each relation produces. Binding (`rayflink.table.binding`) makes plans, rules
(`rayflink.table.optimizer`) rewrite them, and `rayflink.table.physical` turns them into operators.
"""
