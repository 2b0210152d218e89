"""Memory of many keys with one partial match each, in a keyed operator of this process with state in memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable
from functools import partial
from operator import itemgetter
from typing import Any

from benchmarks.inputs.cep_events import EVENTS_A_MS
from benchmarks.streams.ours_cep import BATCH_EVENTS, paid, steps
from benchmarks.streams.ours_windows import resident_bytes
from rayflink.cep.functions import Selection
from rayflink.cep.runtime.cep_operator import CepOperator, MatchOptions
from rayflink.common.records.batches import RowBatch, Watermark
from rayflink.testing import OperatorHarness, Place


def run(data_path: str | None, keys: int) -> dict[str, Any]:
    """Let each key begin a match of the pattern, which has no `within`.

    The events are made batch by batch, so that those which partial matches refer to count as well.
    """
    began = time.time()
    selection = Selection(paid)
    create = partial(CepOperator, itemgetter(0), steps(is_strict=False), selection, MatchOptions())
    with OperatorHarness(create, place=Place(config={"state.backend.type": "hashmap"})) as harness:
        operator = harness.operators[0]
        gc.collect()
        before = resident_bytes()
        for first in range(0, keys, BATCH_EVENTS):
            numbers = range(first, min(first + BATCH_EVENTS, keys))
            events = [(number, 1, number % 1000, number // EVENTS_A_MS) for number in numbers]
            _drain(operator.process(RowBatch(events, [event[3] for event in events]), 0))
            _drain(operator.process_watermark(Watermark(numbers[-1] // EVENTS_A_MS - 1)))
        _drain(operator.process_watermark(Watermark(keys)))
        del events
        gc.collect()
        grown = resident_bytes() - before
    return {"rows": keys, "seconds_total": time.time() - began, "bytes_a_key": grown / keys}


def _drain(elements: Iterable[object]) -> None:
    for _ in elements:
        pass
