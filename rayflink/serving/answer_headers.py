"""The headers of every answer, and which kinds of answers a client takes."""

from __future__ import annotations

__all__ = ["PAGE_POLICY", "accepts", "answer_headers"]

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a page of ours may load: files of its own server, and no script within the page."""


def answer_headers(media_type: str) -> dict[str, str]:
    """Return the headers by which a browser treats an answer as it is meant; a route's own ones replace them.

    >>> answer_headers("application/json")["cache-control"]
    'no-store'

    Args:
        media_type: of the answer.
    """
    is_page = media_type.partition(";")[0].strip().lower() == "text/html"
    return {
        "cache-control": "no-store",
        "content-security-policy": PAGE_POLICY if is_page else "default-src 'none'; frame-ancestors 'none'",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }


def accepts(header: str, media_type: str) -> bool:
    """Return whether the header Accept of a request lets an answer be of a type.

    >>> accepts("text/html, */*;q=0.1", "application/json"), accepts("image/png", "application/json")
    (True, False)
    """
    wanted = media_type.partition(";")[0].strip().lower()
    family = f"{wanted.partition('/')[0]}/*"
    quality = {}
    for part in header.lower().split(","):
        name, *parameters = (word.strip() for word in part.split(";"))
        quality[name] = not any(parameter.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000")
                                for parameter in parameters)  # fmt: skip
    for name in (wanted, family, "*/*", "*"):
        if name in quality:
            return quality[name]
    return not header.strip()
