"""Compiled plans: the optimized plan of INSERTs as JSON, which later versions read and run.

`plan_document` has the form of the whole: nodes with their numbers, types, versions and operator ids; `plan_types` the
names that classes have in it, `plan_values` the fields of nodes, `plan_tables` tables and functions, by name and
definition. Optimized sinks enter and leave; nothing is planned here, and no step of a program is added.
`rayflink.table.statements` compiles, loads and runs them. The page docs/sql-plans.md says what the form promises.
"""
