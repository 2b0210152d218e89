"""The files of the dashboard as answers to requests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from rayflink.serving.json_requests import Answer, FileAnswer, JsonRequest, Refusal, Role, Route

__all__ = ["FILES", "StaticPages"]

FILES = Path(__file__).parent / "files"
INDEX = "index.html"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class StaticPages:
    """Answers with the files of a folder, read once; no path leads to any other.

    >>> [route.pattern for route in StaticPages().routes()]
    ['/', '/index.html', '/favicon.ico', '/ui/{name}']

    Args:
        folder: of the files; those of types that are not in `MEDIA_TYPES` are left out.
    """

    def __init__(self, folder: Path = FILES) -> None:
        self._files = read_files(folder)

    def routes(self) -> list[Route]:
        """Return the functions of all requests, for which no token is needed: the files are the same for everybody."""
        return [
            Route("GET", "/", lambda request: self._file(INDEX, request), Role.NONE),
            Route("GET", f"/{INDEX}", lambda request: self._file(INDEX, request), Role.NONE),
            Route("GET", "/favicon.ico", lambda request: self._file("icon.svg", request), Role.NONE),
            Route("GET", "/ui/{name}", lambda request: self._file(request.parameters["name"], request), Role.NONE),
        ]

    def _file(self, name: str, request: JsonRequest) -> Answer:
        if name not in self._files:
            raise Refusal(404, f"Not found: {request.path}")
        file, tag = self._files[name]
        headers = {"cache-control": "no-cache", "etag": tag}
        known = [word.strip().removeprefix("W/") for word in request.headers.get("if-none-match", "").split(",")]
        if tag in known:
            return FileAnswer(b"", file.media_type, headers, 304)
        return FileAnswer(file.content, file.media_type, headers)


@cache
def read_files(folder: Path) -> Mapping[str, tuple[FileAnswer, str]]:
    """Return the files of a folder by name, each with its entity tag."""
    files = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in MEDIA_TYPES and path.is_file():
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            files[path.name] = FileAnswer(content, MEDIA_TYPES[path.suffix]), tag
    return files
