"""The SQL shell, `rayflink sql`: statements that are typed, piped or read from a file, and their results.

- `commands`: statements of the shell itself (QUIT, HELP, SHOW JOBS, STOP JOB, ...) beside those of SQL.
- `shell_session`: the contract of what runs statements. `sql_session`: one environment, and the jobs that it started;
  `gateway_session`: a session at a SQL gateway.
- `result_output`: results as text, CSV and JSON; `live_output`: a table that is drawn anew where it stands.
- `completion`: the words that may follow what is typed. `prompt`: the terminal; it alone needs prompt_toolkit.
- `shell_loop`: reads, runs, shows, until there is nothing left.

Text enters, and text leaves. How statements are run does not belong here, but in `rayflink.table`.
"""
