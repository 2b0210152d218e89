"""Jobs whose output is known by arithmetic, with a step that fails until it is helped, or is slow."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rayflink.common import WatermarkStrategy
from rayflink.common.functions.function_classes import MapFunction
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.launch.remote_submission import RemoteSubmission
from tests.exactly_once.job import InWindow, Lanes, Running, arguments, sink_of
from tests.exactly_once.verifier import Expectation, Verdict, lines_of_files, verify

Record = tuple[int, int]
LANES, KEYS, WINDOW = 2, 5, 50


class Priced(MapFunction):
    """Looks for a list of prices, from a position on, and raises where there is none."""

    def __init__(self, prices: str, since: int) -> None:
        self._prices, self._since, self._is_known = prices, since, False

    def map(self, record: Any) -> Any:
        if record[1] >= self._since and not self._is_known:
            if not os.path.exists(self._prices):
                raise FileNotFoundError(f"there is no list of prices {self._prices}")
            self._is_known = True
        return record


class Scored(MapFunction):
    """Takes its time for each record, until a file is there."""

    def __init__(self, pause_s: float, release: str) -> None:
        self._pause_s, self._release = pause_s, release

    def map(self, record: Any) -> Any:
        if self._pause_s and os.path.exists(self._release):
            self._pause_s = 0.0
        time.sleep(self._pause_s)
        return record


@dataclass
class LinesJob:
    """A job that counts and sums by key and window, and writes lines into files.

    Args:
        folder: of its files.
        records: of each lane.
        rate: records a second of a subtask of the source, until `release`.
        retains: whether its checkpoints stay when it fails or is cancelled.
        checkpoints: whether it takes some by the clock.
    """

    folder: Path
    records: int = 400
    rate: int = 200
    retains: bool = True
    checkpoints: bool = True
    options: dict[str, str] = field(default_factory=dict)

    def submission(self, name: str, step: MapFunction, step_name: str = "step") -> RemoteSubmission:
        """Return the job with a step between its source and its state."""
        options = {
            "parallelism.default": "1", "restart-strategy.type": "none",
            "execution.checkpointing.dir": str(self.folder / "checkpoints"),
        }  # fmt: skip
        if self.checkpoints:
            options["execution.checkpointing.interval"] = "200 ms"
        if self.retains:
            options["execution.checkpointing.externalized-checkpoint-retention"] = "RETAIN_ON_CANCELLATION"
        env = StreamExecutionEnvironment({**options, **self.options})
        times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])
        lanes = Lanes(LANES, self.records, self.rate, self._released)
        numbers = env.from_source(lanes, times, "lanes").uid("lanes")
        stepped = numbers.key_by(_key).map(step).name(step_name).uid("step")
        keyed = stepped.key_by(_key)
        running = keyed.process(Running("")).name("running").uid("running")
        windows = keyed.window(TumblingEventTimeWindows.of(WINDOW)).process(InWindow()).name("windows").uid("windows")
        asked = arguments(["--out", str(self.folder / "out"), "--release", ""])
        running.union(windows).sink_to(sink_of(asked)).name("lines").uid("lines")
        return RemoteSubmission.of(env.get_job_graph(name), (), None)

    @property
    def _released(self) -> str:
        return str(self.folder / "release")

    @property
    def prices(self) -> Path:
        """Return the file that `Priced` looks for."""
        return self.folder / "prices.csv"

    def priced(self, since: int = 60) -> RemoteSubmission:
        """Return a job that fails until its list of prices is there."""
        return self.submission("orders", Priced(str(self.prices), since), "price")

    def scored(self, pause_s: float, name: str = "clicks") -> RemoteSubmission:
        """Return a job with a step that is slow until `release`."""
        return self.submission(name, Scored(pause_s, self._released), "score")

    def release(self) -> None:
        """Let the rest of the input come as fast as it is taken, and have nothing be slow."""
        Path(self._released).touch()

    def newest_checkpoint(self) -> int:
        """Return the number of the last complete checkpoint, 0 where there is none."""
        published = (self.folder / "checkpoints").glob("*/chk-*/_metadata")
        return max((int(path.parent.name.removeprefix("chk-")) for path in published), default=0)

    def verdict(self) -> Verdict:
        """Return what the output is, compared with the arithmetic."""
        return verify(Expectation(LANES, KEYS, self.records, WINDOW), lines_of_files(self.folder / "out"))


def three_jobs(folder: Path) -> dict[str, LinesJob]:
    """Return the folders of a job that is well, one that fails, and one that is slow for minutes if nobody helps it."""
    jobs = {name: LinesJob(folder / name) for name in ("well", "failing", "slow")}
    jobs["slow"].rate, jobs["slow"].records = 100, 5_000
    return jobs


def submissions(jobs: dict[str, LinesJob]) -> list[RemoteSubmission]:
    """Return the submissions of three jobs: "clicks", "orders" and "slow clicks"."""
    for lines in jobs.values():
        lines.folder.mkdir()
    return [jobs["well"].scored(0.0), jobs["failing"].priced(), jobs["slow"].scored(0.016, "slow clicks")]


def _key(record: Record) -> int:
    return record[0] * KEYS + record[1] % KEYS
