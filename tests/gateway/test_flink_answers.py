"""Our gateway answers as Flink's has answered: columns with their types, rows with their kinds, jobs and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.gateway.flink_gateway import GOLDEN, answers


def alike(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what differs by design: numbers are compared as numbers, and not as they are written."""
    return json.loads(json.dumps(answer), parse_float=float)


@pytest.mark.slow
def test_statements_are_answered_as_by_flink_field_by_field(gateway):
    flink = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    for ours, wanted in zip(answers(gateway.url), flink, strict=True):
        assert alike(ours) == alike(wanted), ours["statement"]
