"""Requests of commands to a dispatcher."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from rayflink.common.options.option_sources import given_options
from rayflink.serving.http_server import ServerError
from rayflink.serving.rest_settings import client_tls

from .background import BackgroundServer

__all__ = ["ask"]

ASK_S = 30.0
MOST_OF_ERROR = 2000


def ask(server: BackgroundServer, method: str, path: str, timeout_s: float = ASK_S) -> dict[str, Any]:
    """Return the answer of a dispatcher.

    Raises:
        ServerError: it does not answer, or refuses.
    """
    headers = {"Authorization": f"Bearer {server.token}"} if server.token else {}
    request = urllib.request.Request(f"{server.url}{path}", method=method, headers=headers)
    trusted = client_tls(given_options()) if server.url.startswith("https:") else None
    try:
        with urllib.request.urlopen(request, timeout=timeout_s, context=trusted) as answer:
            document: dict[str, Any] = json.loads(answer.read() or b"{}")
            return document
    except urllib.error.HTTPError as error:
        said = error.read(MOST_OF_ERROR).decode(errors="replace")
        raise ServerError(f"the cluster at {server.url} answered {error.code}: {said}", "see its log") from error
    except (OSError, ValueError) as error:
        remedy = "see whether the dispatcher runs: `rayflink cluster status`"
        raise ServerError(f"the cluster at {server.url} does not answer: {error}", remedy) from error
