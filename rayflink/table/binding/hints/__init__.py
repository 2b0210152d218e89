"""Reads the hints of a query that its plan holds: `/*+ LOOKUP(...) */`, `MULTI_JOIN` and `STATE_TTL`.

- `lookup_hints`: how rows of a lookup join are found.
- `multi_join_hints`: which tables are joined in one step.
- `state_ttl`: how long a step stores the rows of a table.

The tree of a SELECT and the tables in scope enter, and relations with the hints leave. The hint OPTIONS, which belongs
to a table, is read where tables are looked up.
"""
