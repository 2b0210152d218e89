"""Statements of SQL beyond queries: definitions, INSERT, ALTER, EXPLAIN, and how they run as jobs.

`planning_context` has the names and options by which statements become plans; `statement_runner` dispatches a parsed
statement, `query_runner` runs a plan as a job, `resolution` turns a table's definition into the relation that reads it.
Each calls those below it, and none the `TableEnvironment`. Parsing is in `rayflink.table.parsing`.
"""
