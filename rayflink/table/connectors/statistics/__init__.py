"""Statistics of tables, from which the planner estimates rows.

`table_statistics` has the values, `file_statistics` reads them from the metadata or the first lines of files, and
`in_memory_statistics` computes them from columns in memory. Files or columns enter, a `TableStatistics` leaves.

What follows from them is in `rayflink.table.optimizer.estimates`.
"""
