# mypy: disable-error-code="import-not-found, misc"
"""W1 on Pathway: a static text file, a Python split, a group count, the null sink."""

from __future__ import annotations

import time
from typing import Any

import pathway as pw


def run(data_path: str) -> dict[str, Any]:
    """Count the words of `data_path`; Pathway joins the updates of one instant, so fewer than one a word leave it."""
    entered = time.monotonic()
    first: list[float] = []
    rows = 0

    def split(line: str) -> list[str]:
        nonlocal rows
        if not first:
            first.append(time.monotonic())
        words = line.split()
        rows += len(words)
        return words

    lines = pw.io.plaintext.read(data_path, mode="static")
    words = lines.select(word=pw.apply_with_type(split, list[str], pw.this.data)).flatten(pw.this.word)
    pw.io.null.write(words.groupby(pw.this.word).reduce(pw.this.word, count=pw.reducers.count()))
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {"rows": rows, "seconds_total": time.monotonic() - entered, "seconds_startup": first[0] - entered}
