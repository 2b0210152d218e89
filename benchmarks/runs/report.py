"""Runs to numbers, numbers to tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from statistics import median
from typing import Any

from benchmarks.runs.rounds import Record, RunFailed


@dataclass(frozen=True)
class Spread:
    """Median, least and greatest of one number over the rounds."""

    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        return cls(float(median(values)), min(values), max(values))

    def show(self, digits: int = 2) -> str:
        """`median (min to max)` with so many digits after the point."""
        return f"{self.median:.{digits}f} ({self.min:.{digits}f} to {self.max:.{digits}f})"


def rate(result: Mapping[str, Any]) -> float:
    """Rows a second after start-up; of the warm jobs, their median, where a process ran several."""
    if result.get("seconds_warm"):
        return float(result["rows"] / median(result["seconds_warm"]))
    return float(result["rows"] / (result["seconds_total"] - result["seconds_startup"]))


def whole_rate(result: Mapping[str, Any]) -> float:
    """Rows a second of the first job, start-up included."""
    return float(result["rows"] / result["seconds_total"])


def ratios(base: Record, other: Record) -> Spread:
    """The rate of `base` over that of `other`, round by round: each ratio is of neighbours in time."""
    pairs = zip(base.results, other.results, strict=False)  # one of them may have failed in a later round
    return Spread.of([rate(mine) / rate(theirs) for mine, theirs in pairs])


def base_of(records: Sequence[Record]) -> Record | None:
    """Whom the others are compared with: ours, which comes first, or else the first that ran."""
    return next((record for record in records if record.results), None)


def rates_table(records: Sequence[Record]) -> str:
    """Markdown: a line a contestant that ran, then start-up in a table of its own.

    The first rate is the one after start-up (`rate`), the second that of the first job with start-up (`whole_rate`).
    """
    base = base_of(records)
    if base is None:
        return "nothing ran"
    head = ("contestant", "words", "runs", "M words/s", "with start-up", f"{base.contestant.name} / it")
    rows, startups = [], []
    for record in (record for record in records if record.results):
        results = record.results
        rows.append(
            (
                record.contestant.about,
                f"{record.words:,}",
                str(len(results)),
                Spread.of([rate(result) / 1e6 for result in results]).show(3),
                Spread.of([whole_rate(result) / 1e6 for result in results]).show(3),
                ratios(base, record).show(),
            )
        )
        startup = Spread.of([result["seconds_startup"] for result in results])
        startups.append((record.contestant.about, startup.show()))
    return table(head, rows) + "\n\n" + table(("contestant", "process start to first record, s"), startups)


def cost_table(records: Sequence[Record]) -> str:
    """Markdown: a line a contestant that ran; the even ones take checkpoints and are compared with those before them.

    The cost is taken round by round.
    """
    rows = []
    for plain, taking in zip(records[::2], records[1::2], strict=True):
        pairs = list(zip(plain.results, taking.results, strict=False))
        cost = [100 * (1 - rate(with_) / rate(without)) for without, with_ in pairs]
        for record, shown in ((plain, "-"), (taking, Spread.of(cost).show(1) if cost else "-")):
            if record.results:
                rates = Spread.of([rate(result) / 1e6 for result in record.results]).show(3)
                taken = Spread.of([result["checkpoints"] for result in record.results]).show(0)
                rows.append((record.contestant.about, str(len(record.results)), rates, taken, shown))
    return table(("contestant", "runs", "M words/s", "checkpoints of the last job", "cost, %"), rows)


def slopes_table(records: Sequence[Record]) -> str:
    """Markdown: a line a contestant and query, which are given in two sizes one after the other.

    The slope is the rows that the larger has more over the seconds that it takes longer, round by round.
    """
    lines: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        query = record.contestant.about.split(", ")[1]
        lines.setdefault((query, record.contestant.name), []).append(record)
    rows, slopes = [], {}
    for (query, name), sizes in lines.items():
        if len(sizes) < 2 or not all(record.results for record in sizes):
            continue
        small, large = sizes
        pairs = zip(small.results, large.results, strict=False)
        slopes[query, name] = [
            (more["rows"] - few["rows"]) / max(more["seconds_job"] - few["seconds_job"], 1e-3) for few, more in pairs
        ]
        seconds = Spread.of([result["seconds_job"] for result in small.results]).show()
        slope = Spread.of([one / 1e6 for one in slopes[query, name]])
        base = slopes.get((query, "ours"), slopes[query, name])
        ratio = Spread.of([mine / its for mine, its in zip(base, slopes[query, name], strict=False)])
        rows.append((query, small.contestant.about, seconds, slope.show(), ratio.show()))
    head = ("query", "smaller size", "seconds of the job", "slope, M rows/s", "ours / it")
    return table(head, rows)


def jobs_table(records: Sequence[Record]) -> str:
    """Markdown: a line a query and contestant, of processes that ran queries over a smaller and a larger set.

    Seconds are those of the larger set, the slope is the time by which it takes longer, CPU is its own; both an event.
    How many times less the first contestant takes is told round by round, and has a geometric mean over the queries.
    """
    ran = [record for record in records if record.results]
    head = ("query", "contestant", "seconds", "slope, ns", "CPU, ns", "faster: seconds", "faster: slope", "less CPU")
    rows: list[tuple[str, ...]] = []
    factors: dict[str, list[list[float]]] = {record.contestant.name: [] for record in ran}
    for query in dict.fromkeys(job["query"] for record in ran for job in record.results[0]["jobs"]):
        base = [_job_numbers(result, query) for result in ran[0].results]
        for record in ran:
            own = [_job_numbers(result, query) for result in record.results]
            shown = [Spread.of([one[at] for one in own]).show(digits) for at, digits in enumerate((2, 0, 0))]
            pairs = list(zip(base, own, strict=False))
            times = [Spread.of([its[at] / mine[at] for mine, its in pairs]) for at in range(3)]
            factors[record.contestant.name].append([one.median for one in times])
            rows.append((query, record.contestant.about, *shown, *(one.show() for one in times)))
    for record in ran:
        each = zip(*factors[record.contestant.name], strict=True)
        means = [f"{prod(column) ** (1 / len(column)):.2f}" for column in each]
        rows.append(("geometric mean", record.contestant.about, "", "", "", *means))
    return table(head, rows)


def jobs_and_numbers(records: Sequence[Record]) -> str:
    """Markdown: the table of the sessions, then the numbers of the other contestants side by side."""
    ran = [record for record in records if record.results]
    sessions = [record for record in ran if record.results[0].get("jobs")]
    others = [record for record in ran if record not in sessions]
    tables = [jobs_table(sessions) if sessions else "", side_by_side(others) if others else ""]
    return "\n\n".join(filter(None, tables))


def equal_counts(records: Sequence[Record], name: str) -> dict[tuple[str, int], int]:
    """Return a count of each job by its query and number of events.

    Raises:
        RunFailed: two contestants, or two rounds, have counted differently.
    """
    counts: dict[tuple[str, int], int] = {}
    for record in records:
        for job in (job for result in record.results for job in result.get("jobs", ())):
            which = job["query"], job["events"]
            if counts.setdefault(which, job[name]) != job[name]:
                other = counts[which]
                raise RunFailed(f"{record.contestant.name} counted {job[name]} {name} of {which}, another one {other}")
    return counts


def _job_numbers(result: Mapping[str, Any], query: str) -> tuple[float, float, float]:
    """Seconds of the larger set; what an event more takes, in ns; CPU of an event, in ns."""
    few, more = sorted((job for job in result["jobs"] if job["query"] == query), key=lambda job: int(job["events"]))
    slope = max(more["seconds"] - few["seconds"], 1e-3) / (more["events"] - few["events"])
    return more["seconds"], slope * 1e9, more["cpu_seconds"] / more["events"] * 1e9


def numbers_table(records: Sequence[Record]) -> str:
    """Markdown: a line a number that the runs of the one contestant reported."""
    record = records[0]
    rows = [(name, Spread.of([result[name] for result in record.results]).show(3)) for name in _numbers_in(record)]
    return table(("number", "median (min to max)"), rows)


def _numbers_in(record: Record) -> list[str]:
    return [name for name, value in record.results[0].items() if isinstance(value, (int, float))]


def side_by_side(records: Sequence[Record]) -> str:
    """Markdown: a line a number, a column a contestant that ran, and the first one's numbers over each other's.

    The ratios are taken round by round; there is none where a number was 0.
    """
    ran = [record for record in records if record.results]
    base, *others = ran
    head = ["number", *(record.contestant.about for record in ran)]
    head += [f"{base.contestant.name} / {record.contestant.name}" for record in others]
    rows = []
    for name in dict.fromkeys(name for record in ran for name in _numbers_in(record)):
        cells = [_spread_of([result[name] for result in record.results if name in result]) for record in ran]
        for other in others:
            pairs = zip(base.results, other.results, strict=False)
            cells.append(_spread_of([a[name] / b[name] for a, b in pairs if a.get(name) and b.get(name)]))
        rows.append([name, *cells])
    return table(head, rows)


def lines_table(records: Sequence[Record]) -> str:
    """Markdown: a line a contestant that ran, a column a number, each the median over the rounds."""
    ran = [record for record in records if record.results]
    names = list(dict.fromkeys(name for record in ran for name in _numbers_in(record)))
    rows = []
    for record in ran:
        found = [[result[name] for result in record.results if name in result] for name in names]
        rows.append([record.contestant.about, *(f"{median(values):,.0f}" if values else "-" for values in found)])
    return table(["job", *names], rows)


def _spread_of(values: Sequence[float]) -> str:
    return Spread.of(values).show() if values else "-"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with its columns aligned."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def as_json(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Every run and its summary, as JSON values."""
    base = base_of(records)
    return [
        {
            "name": record.contestant.name,
            "about": record.contestant.about,
            "words": record.words,
            "missing": record.missing,
            "runs": record.results,
            **(_summary(base, record) if base and record.results and record.words else {}),
        }
        for record in records
    ]


def _summary(base: Record, record: Record) -> dict[str, Any]:
    return {
        "words_per_second": asdict(Spread.of([rate(result) for result in record.results])),
        "words_per_second_with_startup": asdict(Spread.of([whole_rate(result) for result in record.results])),
        "startup_seconds": asdict(Spread.of([result["seconds_startup"] for result in record.results])),
        f"ratio_{base.contestant.name}_to_this": asdict(ratios(base, record)),
    }
