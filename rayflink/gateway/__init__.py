"""The SQL gateway, `rayflink sql-gateway`: Flink's REST interface, for its SQL client, its JDBC driver and others.

- `logical_types`, `result_values`: types of columns and values of rows in the JSON of Flink's gateway.
- `result_pages`: rows between the job that gives them and the client that fetches them by token, with a bound.
- `operation`: one statement from its arrival until it is closed. `gateway_statements`: runs one.
- `gateway_session`: one environment, its statements, and the thread that runs them in turn. `session_registry`: all
  sessions, their limit, and the end of those that no client asks for. `local_jobs`: jobs of INSERTs in this process.
- `rest_endpoints`: requests and answers. `sql_gateway`: puts all together and listens.

Requests enter as values and answers leave as values; HTTP itself is in `rayflink.serving`. How statements are run does
not belong here, but in `rayflink.table`, and what the shell shares with the gateway in `rayflink.shell`.
"""
