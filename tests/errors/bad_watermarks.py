"""Bad inputs of timestamps and watermarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from rayflink.common import Duration, WatermarkGenerator, WatermarkStrategy
from rayflink.connectors.collection import CollectionSource
from tests.errors.bad_input import RUNNING, WRITTEN, bad, stamped

ASCENDING = WatermarkStrategy.for_monotonous_timestamps()


def assigned(env: Any, records: list[Any], strategy: Any) -> None:
    env.from_collection(records).assign_timestamps_and_watermarks(strategy).print()


class Nonsense(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: Any) -> None: ...


@bad("a watermark strategy that is none", WRITTEN, "a WatermarkStrategy is wanted, found 5", "for_bounded_out_of_order")
def _(env: Any, folder: Path) -> None:
    assigned(env, [1], 5)


@bad("a source with a watermark strategy that is none", WRITTEN, "a WatermarkStrategy is wanted, found 'numbers'")
def _(env: Any, folder: Path) -> None:
    env.from_source(CollectionSource([1]), "numbers")


@bad("a stream aligned with others that is no source", WRITTEN, "only a source can wait for others", "env.from_source(")
def _(env: Any, folder: Path) -> None:
    assigned(env, [1], ASCENDING.with_watermark_alignment("all", Duration.of_seconds(1)))


@bad(
    "an aligned source without watermarks",
    WRITTEN,
    "would hold back its group for ever",
    "for_bounded_out_of_orderness",
)
def _(env: Any, folder: Path) -> None:
    WatermarkStrategy.no_watermarks().with_watermark_alignment("all", Duration.of_seconds(1))


@bad("watermarks every 0 records", WRITTEN, "at least 1 record", "found 0")
def _(env: Any, folder: Path) -> None:
    ASCENDING.with_emit_every(0)


@bad("an idle timeout of 0", WRITTEN, "an idle timeout must be above 0 ms, found 0 ms")
def _(env: Any, folder: Path) -> None:
    ASCENDING.with_idleness(Duration.of_seconds(0))


@bad("a record without timestamp", RUNNING, "found None", "with_null_timestamps_dropped()", "record: (")
def _(env: Any, folder: Path) -> None:
    stamped(env, None).print()


@bad("a timestamp column that is not there", RUNNING, "a record has no field 'at'", "record: {")
def _(env: Any, folder: Path) -> None:
    assigned(env, [{"id": 1}], ASCENDING.with_timestamp_column("at"))


@bad("a timestamp column of strings", RUNNING, "found a column of string; give one of integers, timestamps or dates")
def _(env: Any, folder: Path) -> None:
    columns = env.from_collection([1]).map_batches(lambda batch: pa.record_batch({"at": ["noon"]}), "arrow")
    columns.assign_timestamps_and_watermarks(ASCENDING.with_timestamp_column("at")).print()


@bad("a batch with too few timestamps", RUNNING, "a timestamp for each of", "records is wanted, found 0")
def _(env: Any, folder: Path) -> None:
    assigned(env, [1, 2], ASCENDING.with_batch_timestamp_assigner(lambda records: []))


@bad("a generator that is none", RUNNING, "for_generator wants a function that makes a WatermarkGenerator, it made 5")
def _(env: Any, folder: Path) -> None:
    assigned(env, [1], WatermarkStrategy.for_generator(lambda: 5))  # type: ignore[arg-type, return-value]


@bad("a generator that sends a number", RUNNING, "emit_watermark wants a Watermark, found", "of type int", "record: 1")
def _(env: Any, folder: Path) -> None:
    assigned(env, [1], WatermarkStrategy.for_generator(Nonsense))
