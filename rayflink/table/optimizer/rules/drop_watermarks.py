"""A query over whole tables needs no watermarks: windows are complete when the tables end."""

from __future__ import annotations

from dataclasses import replace

from ...plan.logical import Relation, WatermarkAssigner
from ...plan.typed import Literal


def drop_watermarks(plan: Relation) -> Relation:
    """In batch mode the time attribute is a column like others; filters then reach the source."""
    return plan.mapped(_forgotten)


def _forgotten(one: Relation) -> Relation:
    if not isinstance(one, WatermarkAssigner) or isinstance(one.expression, Literal):  # the source's own
        return one
    below = one.input
    return replace(below, schema=one.schema)
