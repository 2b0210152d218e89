"""Decides which requests of pages in browsers are answered: those that another site makes a browser send are not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from .json_requests import Refusal
from .server_settings import is_loopback

__all__ = ["RequestHead", "cors_headers", "ensure_host", "ensure_own_page", "host_name", "preflight_headers"]

LOCAL = "127.0.0.1, [::1] or localhost"


@dataclass(frozen=True)
class RequestHead:
    """A request without its body.

    Args:
        method: of HTTP.
        scheme: "http" or "https".
        headers: by name in lower case.
        address: of the client.
    """

    method: str
    scheme: str
    headers: Mapping[str, str] = field(default_factory=dict)
    address: str = ""


def host_name(host: str) -> str:
    """Return the name in a header Host, in lower case, without its port.

    >>> host_name("LocalHost:8081"), host_name("[::1]:8081"), host_name("")
    ('localhost', '::1', '')
    """
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def ensure_host(head: RequestHead, hosts: Collection[str]) -> None:
    """Refuse a request to another name than the server's: a page may let a name of its own stand for this machine.

    Args:
        hosts: names of the server, in lower case, beside those of loopback.

    Raises:
        Refusal: the name is another.
    """
    name = host_name(head.headers.get("host", ""))
    if not is_loopback(name) and name not in hosts:
        remedy = "set a token for the server, and send it; or name the host in rest.allowed-hosts"
        raise Refusal(403, f"without a token, only programs of this machine are answered, by {LOCAL}; {remedy}")


def ensure_own_page(head: RequestHead, changes: bool, origins: Collection[str]) -> None:
    """Refuse a request without a token that a page of another origin sends.

    Args:
        changes: whether the request changes something or runs code.
        origins: whose pages may read.

    Raises:
        Refusal: it is such a request.
    """
    origin, site = head.headers.get("origin"), head.headers.get("sec-fetch-site", "none")
    remedy = "send a token in the header `Authorization: Bearer TOKEN`"
    if origin is not None:
        own = f"{head.scheme}://{head.headers.get('host', '').strip()}".lower()
        is_own = origin.lower() == own
        if not is_own and (changes or origin not in origins):
            raise Refusal(403, f"without a token, pages of {origin:.200} are not answered; set a token, and {remedy}")
    elif site in ("cross-site", "same-site"):
        is_link = head.headers.get("sec-fetch-mode") == "navigate" and head.method in ("GET", "HEAD")
        if changes or not is_link:
            raise Refusal(403, f"without a token, pages of other sites are not answered; {remedy}")
    elif site not in ("none", "same-origin"):
        raise Refusal(403, f"found the header Sec-Fetch-Site: {site:.40}, which no browser sends; {remedy}")
    is_page = origin is not None or site != "none"
    media_type = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    if is_page and changes and media_type not in ("", "application/json"):
        raise Refusal(415, f"without a token, pages send application/json, found {media_type:.80}; {remedy}")


def cors_headers(head: RequestHead, origins: Collection[str]) -> dict[str, str]:
    """Return the headers by which a browser lets pages of other origins read an answer; {} where it must not."""
    origin = head.headers.get("origin")
    if not origins:
        return {}
    allowed = {"access-control-allow-origin": origin} if origin is not None and origin in origins else {}
    return {"vary": "Origin", **allowed}


def preflight_headers(head: RequestHead, origins: Collection[str], methods: Collection[str]) -> dict[str, str]:
    """Return the headers of an answer to a browser that asks before it sends a request of a page."""
    headers = cors_headers(head, origins)
    if "access-control-allow-origin" in headers and "access-control-request-method" in head.headers:
        headers["access-control-allow-methods"] = ", ".join(sorted(methods))
        headers["access-control-allow-headers"] = "authorization, content-type"
        headers["access-control-max-age"] = "600"
    return headers
