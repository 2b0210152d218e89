"""HTTP: a source that takes the requests of webhooks, and a sink that sends records to a service.

- `http_client`: requests with retries; an outage is retried, a refusal is not.
- `http_sink`: the sink and its writers, which send several requests at once.
- `http_source`: the source and its reader, with the server in threads beside it.

Another protocol over HTTP, such as the API of a lake's catalog, does not belong here.
"""
