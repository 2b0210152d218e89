"""Operators of process table functions.

`process_operators` call the function for rows and timers: `process_calls` make the calls, `process_states` and
`process_timers` are what belongs to a partition, `state_types` check what is written to state, and `result_rows` turn
what the function gives into columns. Rows come in as columns and leave as columns; state is in
the backend of the stream program, as of a KeyedProcessFunction.
"""
