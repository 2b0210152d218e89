"""The bodies of requests: in memory or in a file, with bounds on size and time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .json_requests import Refusal, Route
from .server_settings import ServerSettings

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["RequestBodies"]

BODY_S = 30.0
"""Seconds within which a body has to come, or the next piece of an upload."""
LEAST_UPLOAD_BYTES_S = 50_000
"""Bytes a second that an upload must come with in all."""
DISCARD_S = 2.0
"""Seconds for which the body of a refused request is received."""
UPLOAD_OPTION = "rest.server.max-content-length"
UPLOADS = 16
"""Uploads at a time, until they are answered; others wait."""


class RequestBodies:
    """Receives bodies.

    Args:
        settings: bounds, and the folder of uploads.
    """

    def __init__(self, settings: ServerSettings) -> None:
        import anyio  # an extra

        self._settings, self._uploads = settings, anyio.CapacityLimiter(UPLOADS)

    @asynccontextmanager
    async def body(self, request: Request, route: Route) -> AsyncIterator[tuple[bytes, Path | None]]:
        """Receive the body, or the file with it, which is deleted at the end of the block.

        Raises:
            Refusal: it is too large or too slow.
        """
        if not route.takes_upload:
            yield await self._in_memory(request), None
            return
        async with self._uploads:
            path = await self._in_file(request)
            try:
                yield b"", path
            finally:
                path.unlink(missing_ok=True)

    async def _in_memory(self, request: Request) -> bytes:
        """Return the body, of which no more is read than the bound."""
        import anyio  # an extra

        most = self._settings.most_bytes
        chunks, size = [], 0
        try:
            with anyio.fail_after(BODY_S):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > most:
                        raise _too_large(most, self._settings.size_option)
                    chunks.append(chunk)
        except TimeoutError as error:
            raise Refusal(408, f"the body has not come within {BODY_S:.0f} s; send it at once") from error
        return b"".join(chunks)

    async def _in_file(self, request: Request) -> Path:
        """Return the file that the body was written to, piece by piece."""
        import anyio  # an extra
        import anyio.to_thread

        most, size = self._settings.most_upload_bytes, 0
        self._ensure_size(request, most)
        descriptor, name = tempfile.mkstemp(prefix="rayflink-upload-", dir=self._settings.upload_folder)
        path, is_whole = Path(name), False
        try:
            with os.fdopen(descriptor, "wb") as file, anyio.fail_after(BODY_S + most / LEAST_UPLOAD_BYTES_S):
                pieces = request.stream().__aiter__()
                while True:
                    with anyio.fail_after(BODY_S):
                        chunk = await anext(pieces, None)
                    if chunk is None:
                        break
                    size += len(chunk)
                    if size > most:
                        raise _too_large(most, UPLOAD_OPTION)
                    await anyio.to_thread.run_sync(file.write, chunk)
            is_whole = True
        except TimeoutError as error:
            raise Refusal(408, f"no more of the body has come for {BODY_S:.0f} s; send it again") from error
        except OSError as error:
            problem = f"the body cannot be stored: {error.strerror or error}"
            raise Refusal(507, f"{problem}; make room in the folder that web.upload.dir names") from error
        finally:
            if not is_whole:
                path.unlink(missing_ok=True)
        return path

    async def discard(self, request: Request) -> None:
        """Receive what is left of the body of a request that is refused: clients read no answer before it is sent."""
        import anyio  # an extra
        from starlette.requests import ClientDisconnect

        if "expect" in request.headers:  # such a client waits for the answer before it sends its body
            return
        size = 0
        with anyio.move_on_after(DISCARD_S), suppress(ClientDisconnect, RuntimeError):  # all of it has come
            async for chunk in request.stream():
                size += len(chunk)
                if size > self._settings.most_upload_bytes:
                    return

    def _ensure_size(self, request: Request, most: int) -> None:
        """Refuse a body by the size that its sender says, before any of it is read."""
        length = request.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length) > most:
            raise _too_large(most, UPLOAD_OPTION)


def _too_large(most: int, option: str) -> Refusal:
    return Refusal(413, f"the body has more than {most} bytes; send less, or raise {option}")
