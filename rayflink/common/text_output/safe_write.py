"""Text written to a stream of any encoding."""

from __future__ import annotations

from typing import TextIO


def write_text(stream: TextIO, text: str) -> None:
    """Write `text`; a character that the stream's encoding does not have becomes a backslash escape, never an error."""
    try:
        stream.write(text)
    except UnicodeEncodeError:  # raised before anything was written
        encoding = getattr(stream, "encoding", None) or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
