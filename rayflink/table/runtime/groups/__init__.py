"""GROUP BY over a stream: rows change the results of their groups, for ever or until the time to live is over.

`group_operators` has the operators, and `group_changes` computes the changes of a batch. `group_accumulators` chooses
the accumulators: `running_sums` and `running_choices` go on from row to row by columns (`segments`),
`running_user_aggregates` by the user's own functions, and `present_values` contain the values of a group, of which
`value_overflow` stores those beyond the best ones apart, and `sequence_overflow` those beyond the first or last ones,
each in an `overflow_table`; `user_views` does so for the views in accumulators of the user's functions.
`distinct_values` is an operator before them, which finds the rows that change the values of a DISTINCT. `table_state`
is the keyed table of an operator. Rows with their kinds enter; changes of results leave.

Aggregates of windows and of whole tables are in `rayflink.table.runtime.windows`.
"""
