"""Text for people: log lines, tables, values cut to a length, and signals that end a wait.

`logs` adds the job, vertex, subtask and attempt to a line, or writes it as JSON; `masked` takes secrets out of it.
`bounded_text` describes a value of the user in bounded length and time; `plain_table` aligns columns; `safe_write`
prints to a terminal that may be closed. Values enter; strings leave. What the lines say about a job is in
`rayflink.common.metrics`.
"""
