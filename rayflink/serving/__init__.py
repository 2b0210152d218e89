"""HTTP servers of rayflink: JSON in, JSON out, with bounds on everything that a client can send or hold open.

- `server_settings`: address, token, certificate and bounds; beyond loopback a token is demanded.
- `json_requests`: one request as values, and the errors that become answers.
- `framing`: several pieces of bytes in one body.
- `json_application`: finds the function of a request by method and path, checks the token, bounds the body; it alone
  needs Starlette.
- `request_statistics`: counts of the requests, for metrics.
- `http_server`: listens, serves in a thread, ends; it alone needs uvicorn.

Functions from requests to plain values enter, a running server leaves. What the requests mean does not belong here.
"""
