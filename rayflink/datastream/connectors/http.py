"""HTTP: webhooks as a source, and a service as a sink; the sink needs `pip install 'rayflink[http]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.http.http_client import HttpError as HttpError
    from rayflink.connectors.http.http_client import HttpTarget as HttpTarget
    from rayflink.connectors.http.http_sink import HttpSink as HttpSink
    from rayflink.connectors.http.http_sink import HttpSinkSettings as HttpSinkSettings
    from rayflink.connectors.http.http_sink import RefusedRecord as RefusedRecord
    from rayflink.connectors.http.http_source import HttpEndpoint as HttpEndpoint
    from rayflink.connectors.http.http_source import HttpSource as HttpSource
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.http.http_client": "HttpError HttpTarget",
            "rayflink.connectors.http.http_sink": "HttpSink HttpSinkSettings RefusedRecord",
            "rayflink.connectors.http.http_source": "HttpEndpoint HttpSource",
        },
    )
