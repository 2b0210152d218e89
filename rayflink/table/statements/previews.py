"""The first rows of a table, for notebooks: shown without being asked for, so within limits of rows and of time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayflink.common.errors import JobCancelled, RayflinkError
from rayflink.common.options import registry as options
from rayflink.common.types import Row

from ..display.html_tables import html_note, html_rows
from ..display.row_slots import RowSlots
from ..plan.logical import Attribute, Relation

if TYPE_CHECKING:
    from ..table_result import TableResult
    from .query_runner import QueryRunner

__all__ = ["Preview", "preview_of"]

MOST_CHANGING = 100_000
"""Rows that are held of a query whose rows change."""


@dataclass(frozen=True)
class Preview:
    """The first rows of a table.

    Args:
        schema: of the rows.
        rows: the first ones.
        note: says how many rows there are, or why there are none here.
        zone: in which instants are shown.
    """

    schema: Sequence[Attribute]
    rows: Sequence[Row]
    note: str
    zone: str

    def to_html(self) -> str:
        """Return the rows as a table of HTML, with the note below."""
        return html_rows(self.schema, self.rows, self.zone) + html_note(self.note)


def preview_of(queries: QueryRunner, plan: Relation) -> Preview:
    """Run a query for its first rows, as far as `rayflink.display.rows` and `rayflink.display.timeout` allow.

    A query that reads a source without an end is not run, and neither is any where the first option is 0. What a
    query raises becomes the note: a table that is shown must not end the cell of a notebook.
    """
    configuration, schema, zone = queries.context.configuration, plan.schema, queries.context.zone
    limit, timeout = configuration.get(options.DISPLAY_ROWS), configuration.get(options.DISPLAY_TIMEOUT)
    seconds = timeout.to_millis() / 1000
    if not limit:
        return Preview(schema, [], "no rows are shown, as rayflink.display.rows is 0", zone)
    try:
        bounds = queries.bounds_of(plan)
        if bounds.endless_source is not None:
            remedy = "rayflink.notebooks.live(table) shows them as they come"
            return Preview(schema, [], f"no rows are shown, as {bounds.endless_source} has no end; {remedy}", zone)
        rows, note = _first_rows(queries.run(plan), limit, seconds, bounds.is_append_only)
    except RayflinkError as error:
        return Preview(schema, [], f"no rows are shown: {error}", zone)
    return Preview(schema, rows, note, zone)


def _first_rows(result: TableResult, limit: int, seconds: float, is_append_only: bool) -> tuple[list[Row], str]:
    rows = result.collect()
    is_late = threading.Event()

    def stop() -> None:
        is_late.set()
        rows.close()

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    slots, has_more = RowSlots[Row](MOST_CHANGING), False
    try:
        for row in rows:
            slots.change(row.get_row_kind(), repr(tuple(row)), row)
            if is_append_only and len(slots) > limit:
                has_more = True
                break
    except JobCancelled:
        if not is_late.is_set():
            raise
    finally:
        timer.cancel()
        rows.close()
    shown = slots.rows()
    if is_late.is_set():
        return shown[:limit], f"rows that came within {seconds:g} seconds; the query was ended then"
    if has_more:
        return shown[:limit], f"the first {limit} rows; there are more"
    if len(shown) > limit:
        return shown[:limit], f"the first {limit} of {len(shown)} rows"
    return shown, f"{len(shown)} row{'' if len(shown) == 1 else 's'}"
