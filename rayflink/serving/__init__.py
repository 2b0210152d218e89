"""HTTP servers of rayflink: JSON in, JSON out, with bounds on everything that a client can send or hold open.

- `server_settings`: address, tokens, certificate and bounds; beyond loopback a token is demanded.
  `rest_settings`: those of the servers of a cluster, from options.
- `json_requests`: one request as values, roles, and the errors that become answers.
- `framing`: several pieces of bytes in one body.
- `access_tokens`: tokens with names and roles, from a file. `failed_tokens`: how often one address may try wrong ones.
- `page_rules`: which pages of browsers are answered. `request_guard`: puts these together: admits or refuses.
- `request_bodies`: in memory or in a file. `answer_headers`: what browsers must know of an answer.
- `audit_log`: a line for each operation. `request_statistics`: counts of all requests, for metrics.
- `json_application`: finds the function of a request by method and path; with the bodies it alone needs Starlette.
- `bounded_connections`: ends those that are too slow. `http_server`: listens, serves in a thread, ends; they need
  uvicorn. `tls_certificate`: is read again when it was renewed.

Functions from requests to plain values enter, a running server leaves. What the requests mean does not belong here.
"""
