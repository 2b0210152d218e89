"""Statements of SQL beyond queries: definitions, INSERT, ALTER, EXPLAIN, and how they run as jobs.

`statement_runner` dispatches a parsed statement, `query_runner` runs a plan as a job, `resolution` turns a table's
definition into the relation that reads it. Parsing is in `rayflink.table.parsing`.
"""
