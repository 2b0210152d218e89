"""A program whose output is known by arithmetic, and which runs until it is told to end. It is run as a script.

Numbers come in lanes, each the positions 0, 1, 2, ... in order and at a gentle rate, until the file `--release` is
there; what is left then comes as fast as it is taken. Position p of lane l has the key l * keys + p % keys and event
time p. Each record becomes the line `r,key,p,count,sum`, with count and sum of the positions of its key so far, which
keyed state has, and each window of each key the line `w,key,start,count,sum`. So a line is missing, there twice or
wrong when a record, state, a timer, or what waits in a sink was lost or repeated. `verifier.py` does the arithmetic.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from rayflink.common import Encoder, WatermarkStrategy
from rayflink.common.connector_base.sink import Sink
from rayflink.common.connector_base.source import (
    PENDING,
    Boundedness,
    EnumeratorContext,
    Polled,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor
from rayflink.common.records.batches import RowBatch
from rayflink.datastream import KeyedProcessFunction, ProcessWindowFunction, RuntimeContext, StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from rayflink.datastream.connectors.postgres import PostgresSink
from rayflink.datastream.state import ValueStateDescriptor
from rayflink.datastream.window import TumblingEventTimeWindows

TICK_MS = 20
CHUNK = 500
"""Records of a batch once nothing is held back."""
SAVEPOINT = "stopped with savepoint"
LOOK_EVERY = 10
"""Records between two looks for the file `--crash`."""


@dataclass(frozen=True)
class Lane:
    """The numbers from `position` up to `end`."""

    number: int
    position: int
    end: int

    @property
    def split_id(self) -> str:
        return f"lane {self.number}"


@dataclass(frozen=True)
class Lanes(Source):
    """Records (lane, position) that are the same each time they are read.

    Args:
        lanes: how many there are; a lane is a split.
        records: of each lane.
        rate: records a second of each subtask, at least 50, while there is no file `release`.
    """

    lanes: int
    records: int
    rate: int
    release: str

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return Dealer(ctx, [Lane(number, 0, self.records) for number in range(self.lanes)])

    def restore_enumerator(self, ctx: EnumeratorContext, state: list[Lane]) -> SplitEnumerator:
        return Dealer(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return LaneReader(ctx, max(1, self.rate * TICK_MS // 1000), self.release)


class Dealer(SplitEnumerator):
    """Gives each reader all its lanes at once, so that event time waits for the slowest of them."""

    def __init__(self, ctx: EnumeratorContext, lanes: list[Lane]) -> None:
        self._ctx, self._lanes = ctx, lanes

    def handle_split_request(self, subtask: int) -> None:
        mine = [lane for lane in self._lanes if lane.number % self._ctx.current_parallelism() == subtask]
        self._lanes = [lane for lane in self._lanes if lane not in mine]
        if mine:
            self._ctx.assign_splits({subtask: mine})
        self._ctx.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[Lane], subtask: int) -> None:
        self._lanes += splits

    def snapshot_state(self) -> list[Lane]:
        return list(self._lanes)


class LaneReader(OneByOneReader):
    """Reads its lanes in turn, a chunk of each, with a pause of a tick between two chunks."""

    def __init__(self, ctx: ReaderContext, chunk: int, release: str) -> None:
        super().__init__()
        self._ctx, self._chunk, self._release = ctx, chunk, release
        self._next_ms = 0
        self._is_released = False

    def open_split(self, split: Lane) -> SplitCursor:
        return LaneCursor(split)

    def poll(self, max_records: int) -> Polled:
        self._is_released = self._is_released or os.path.exists(self._release)
        if self._is_released:
            max_records = CHUNK
        elif self._splits:
            if self._ctx.now_ms() < self._next_ms:
                return PENDING
            self._next_ms = self._ctx.now_ms() + TICK_MS
            max_records = self._chunk
        answer = super().poll(max_records)
        if len(self._splits) > 1 and self._cursor is not None:
            self.put_back()
        return answer

    def next_poll_ms(self) -> int | None:
        return self._next_ms if self._splits else None


class LaneCursor:
    """Reads one lane."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def read(self, max_records: int) -> Polled | None:
        lane = self._lane
        stop = min(lane.end, lane.position + max_records)
        if stop == lane.position:
            return None
        self._lane = replace(lane, position=stop)
        return RowBatch([(lane.number, position) for position in range(lane.position, stop)])

    def position(self) -> Lane:
        return self._lane

    def close(self) -> None:
        """Nothing is open."""


class AskedToFail(Exception):
    """Somebody made the file `--crash`."""


class Running(KeyedProcessFunction):
    """Counts and sums the positions of each key; fails once each time there is a file `crash`."""

    def __init__(self, crash: str) -> None:
        self._crash = crash
        self._seen = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        self._sums = runtime_context.get_state(ValueStateDescriptor("sums"))

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Iterable[str]:
        self._seen += 1
        if self._seen % LOOK_EVERY == 0 and os.path.exists(self._crash):
            with suppress(FileNotFoundError):  # another subtask was first
                os.unlink(self._crash)
                raise AskedToFail(f"at {value}")
        count, total = self._sums.value() or (0, 0)
        count, total = count + 1, total + value[1]
        self._sums.update((count, total))
        yield f"r,{ctx.get_current_key()},{value[1]},{count},{total}"


class InWindow(ProcessWindowFunction):
    """Counts and sums the positions of a key in a window."""

    def process(
        self, key: int, context: ProcessWindowFunction.Context, elements: Collection[tuple[int, int]]
    ) -> Iterable[str]:
        positions = [position for _, position in elements]
        yield f"w,{key},{context.window().start},{len(positions)},{sum(positions)}"


def arguments(given: list[str]) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="folder of the part files")
    parser.add_argument("--release", required=True, help="file that ends the gentle rate")
    parser.add_argument("--crash", default="", help="file that makes a function raise; it is removed first")
    parser.add_argument("--postgres", help="connection string: the lines go into its table `lines`, not into files")
    parser.add_argument("--stop", default="", help="file that stops the job with a savepoint, whose address it prints")
    parser.add_argument("--savepoints", help="folder of savepoints")
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--keys", type=int, default=10, help="of each lane")
    parser.add_argument("--records", type=int, default=10_000, help="of each lane")
    parser.add_argument("--window", type=int, default=100, help="positions of a window")
    parser.add_argument("--rate", type=int, default=1_000, help="records a second of each subtask of the source")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="of the configuration")
    return parser.parse_args(given)


def write(env: StreamExecutionEnvironment, asked: argparse.Namespace) -> None:
    """Put the program into an environment."""
    keys = asked.keys
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])
    lanes = Lanes(asked.lanes, asked.records, asked.rate, asked.release)
    numbers = env.from_source(lanes, times, "lanes").uid("lanes")
    keyed = numbers.key_by(lambda record: record[0] * keys + record[1] % keys)
    running = keyed.process(Running(asked.crash)).uid("running")
    windows = keyed.window(TumblingEventTimeWindows.of(asked.window)).process(InWindow()).uid("windows")
    running.union(windows).sink_to(sink_of(asked)).uid("lines")


def sink_of(asked: argparse.Namespace) -> Sink:
    """Where the lines go: into part files, or rows of the table `lines`."""
    if asked.postgres:
        return PostgresSink(asked.postgres, "lines", ["line"], lambda line: (line,))
    form = FileSink.for_row_format(asked.out, Encoder.simple_string_encoder())
    form = form.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    return form.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()


def run(env: StreamExecutionEnvironment, name: str, asked: argparse.Namespace) -> None:
    """Run a program to its end, or until it is stopped."""
    job = env.execute_async(name)
    ended = job.get_job_execution_result()
    while not ended.done():
        if os.path.exists(asked.stop):
            print(SAVEPOINT, job.stop_with_savepoint(False, asked.savepoints).result())
            return
        time.sleep(0.02)
    ended.result()


def main(given: list[str]) -> None:
    """Write the program and run it."""
    asked = arguments(given)
    env = StreamExecutionEnvironment(dict(option.split("=", 1) for option in asked.option))
    write(env, asked)
    run(env, "exactly once", asked)


if __name__ == "__main__":
    main(sys.argv[1:])
