"""`python -m benchmarks NAME`: run one benchmark, ours and the peers in turns, and report medians and ratios."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.inputs import changing_rows, nexmark
from benchmarks.inputs.bids import QUERIES, bid_file
from benchmarks.inputs.cep_events import CASES
from benchmarks.inputs.kafka_events import EVENTS, broker_with_bids
from benchmarks.inputs.nexmark import UNLIKE, kept_rows
from benchmarks.inputs.nexmark_files import FORMATS
from benchmarks.inputs.words import WORDS_A_LINE, word_file
from benchmarks.keyed_state.state_large import KEYS
from benchmarks.runs import machine, report
from benchmarks.runs.contestants import (
    FLINK_CHECKPOINTS,
    W1_PEERS,
    Contestant,
    cep_ways,
    checkpoint_cost,
    debloating_cost,
    flink_large_state,
    flink_state_large,
    in_flight,
    kafka_sql,
    kept_rows_folder,
    nexmark_ways,
    ours,
    sql,
    sql_latency,
    sql_state_ways,
    written_files_folder,
)
from benchmarks.runs.environments import cache_directory
from benchmarks.runs.rounds import Record, measure

_ABOUT = {
    "w1": "word count of one text file: split, key by word, running count, every update to a sink that discards",
    "formats": "formats of messages, one core: thousands of messages a second to columns, beside the bare libraries",
    "arrow_shuffle": "Arrow batches over a keyed shuffle, hash included",
    "kafka_sink": "the Kafka sink at-least-once beside a bare producer, and exactly-once beside at-least-once",
    "kafka_latency": "from a producer through a job between two topics to a consumer, 10,000 messages a second",
    "latency": "latency over one shuffle, and of the control plane under load",
    "startup": "from execute() to the first record",
    "scaling": "throughput by parallelism and by channels a task",
    "windows": "tumbling counts, sliding sums at several ratios, open sessions; records a CPU-second of the window",
    "state_count": "counts of 1 M keys in a ValueState by a Python KeyedProcessFunction, a CPU second of its task",
    "state_large": "updates of 50 M preloaded counts on RocksDB, file pages and managed memory capped alike",
    "checkpoint_cost": "W1 with a checkpoint each second against none; target: less than 10 % of the rate",
    "recovery": "1 GB of RocksDB state on Ray: from kill -9 of a slot's process, and of a node, to new output",
    "rescale_pause": "1 GB of RocksDB state on Ray, rescaled in place from 1 to 2 subtasks and back",
    "sql": "SQL over a CSV file of bids: a tumbling window by auction (w2), a filter and a projection (w3)",
    "json": "parsers of JSON, one core: MB/s of events from which some fields become columns",
    "kafka_sql": "SQL over a topic of bids as nested JSON of 840 bytes: a tumbling window by auction",
    "sql_latency": "SQL over 10,000 bids a second: from the end of a window of a second to its results",
    "sql_state": "SQL over tables whose rows change, with a row of state for each key: groups, joins, spilled",
    "nexmark": "queries of Nexmark in SQL over CSV files, in one process; seconds, slopes and CPU by query",
    "cep": "patterns of three steps over keyed events in memory, and MATCH_RECOGNIZE over a CSV file",
    "spark_frames": "a Spark DataFrame read as a stream, beside Ray Data's conversion and Parquet files in between",
    "kafka_source": "raw bytes of a Kafka topic: our source, beside a bare consume loop of the client, in pairs",
    "lakes": "Delta and Iceberg tables written and read by a stream, beside deltalake and pyiceberg alone",
    "in_flight": "records in flight before functions that sleep; times of checkpoints, savepoints, stop and cancel",
    "object_store": "files in MinIO, read and written beside the bare libraries; MB/s, the start of a job included",
    "debloating_cost": "W1 and the Arrow shuffle with buffer debloating and without, in pairs; target: at most 2 %",
    "cdc": "PostgreSQL: rows of a snapshot and changes of the log, beside COPY and pg_recvlogical",
    "cdc_mysql": "MariaDB: rows of a snapshot and changes of the log, beside PyMySQL and python-mysql-replication",
    "keyed_table": "SQL's keyed table: COUNT and SUM by 10 M keys, in memory and spilled, checkpoints beside RocksDB",
    "lookup_join": "SQL's lookup joins of 4 M rows with 100,000 keys: in memory, by a function, with a cache",
    "hot_key": "MAX, FIRST_VALUE and the first ten rows over a changelog, of one key with 1 M rows and of 1 M keys",
    "multi_join": "joins of four inputs that change, as one operator and as three joins: CPU and bytes of state",
    "keyed_multiset": "SQL's keyed multiset: rows of a join that come and go by value, of 1 M keys and of a hot one",
    "cluster_load": "a session cluster: 200 jobs submitted, 50 running, 100 requests a second; p99, memory",
    "autoscaler": "simulated jobs under load curves, rescaled and with fixed parallelisms: slot seconds and lag",
    "autoscaler_flows": "load curves of hours, as flows: the autoscaler, a fixed parallelism and an oracle",
    "checkpoint_sync": "a checkpoint a second of 1 GB of RocksDB state under updates: how long the task stands still",
}
_SMALL: dict[str, dict[str, Any]] = {
    "autoscaler": {"seconds": 40},
    "autoscaler_flows": {"small": True},
    "formats": {"messages": 2_000, "rounds": 1},
    "recovery": {"state_mb": 50, "updates": 2_000, "rounds": 1},
    "rescale_pause": {"state_mb": 50, "updates": 2_000, "rounds": 1},
    "kafka_sink": {"pairs": 3, "records": 100_000},
    "kafka_latency": {"seconds": 3.0},
    "state_count": {"keys": 100_000, "records": 400_000},
    "state_large": {"keys": 1_000_000, "warm_seconds": 2, "window_seconds": 5},
    "checkpoint_sync": {"state_mb": 50, "checkpoints": 5},
    "cdc": {"rows": 100_000, "changes": 20_000},
    "cdc_mysql": {"rows": 100_000, "changes": 20_000},
    "spark_frames": {"rows": 200_000, "rounds": 1},
    "lakes": {"rows": 200_000, "rounds": 1},
    "debloating_cost": {"pairs": 3, "share": 0.02},
    "json": {"events": 2_000, "rounds": 1},
    "keyed_table": {"keys": 200_000, "rows": 400_000},
    "lookup_join": {"keys": 10_000, "rows": 100_000},
    "hot_key": {"rows": 20_000},
    "multi_join": {"rows": 4_000},
    "keyed_multiset": {"keys": 100_000, "rows": 100_000},
    "kafka_source": {"records": 200_000, "pairs": 2},
    "object_store": {"rows": 20_000, "rounds": 1},
    "cluster_load": {"jobs": 6, "running": 2, "seconds": 5.0, "rate": 20},
}
"""Benchmark -> what `--small` gives to `run`."""
_NEXMARK_WARM = 100_000
"""Events of the set on which an engine warms up, and whose results are compared."""
_NEXMARK_LIMIT_SECONDS = 3_600
_CLUSTER_LIMIT_SECONDS = 3600.0
"""Time for a run of cluster_load, which starts 200 jobs one after the other before it asks for minutes."""
_CEP_WARM = 200_000
_CEP_KEYS = 1_000_000
"""With a partial match each, of which the memory is measured."""
_SIZED = {"recovery": ("state_mb", "rounds"), "rescale_pause": ("state_mb", "rounds"), "checkpoint_sync": ("state_mb",)}
"""Benchmark -> the options that it takes too."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 0 if anything was measured, 2 if nothing was."""
    asked = _parser().parse_args(arguments)
    before = machine.describe()
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    records = _MEASURED.get(asked.name, _ours_alone)(asked)
    noted = {**before, "load_1min_after": machine.load()}
    print(f"{asked.name}: {_ABOUT[asked.name]}; {asked.runs} runs, interleaved\n")
    print(machine.show(noted) + "\n")
    if any(record.results for record in records):
        print(_SHOWN.get(asked.name, report.numbers_table)(records))
    for record in records:
        if record.missing:
            print(f"\nnot measured: {record.contestant.name}: {record.missing}")
    if asked.json:
        document = {"benchmark": asked.name, "started": started, "machine": noted}
        document["contestants"] = report.as_json(records)
        asked.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0 if any(record.results for record in records) else 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=_ABOUT, help="the benchmark")
    parser.add_argument("--peers", type=_peers, default=list(W1_PEERS), help="comma-separated, '' for none")
    parser.add_argument("--runs", type=_positive, default=5, help="rounds; a round runs each contestant once")
    parser.add_argument("--words", type=_positive, default=16_000_000, help="of w1, checkpoint_cost, debloating_cost")
    parser.add_argument("--interval", type=_positive, default=1_000, help="of checkpoint_cost: ms between checkpoints")
    parser.add_argument("--state-mb", type=_positive, help=f"of {', '.join(_SIZED)}: size of the state")
    parser.add_argument("--rounds", type=_positive, help="of recovery, rescale_pause: of each run, after one start")
    parser.add_argument(
        "--rows",
        type=_positive,
        default=20_000_000,
        help="of sql, nexmark, cep: bids or events; and four times as many",
    )
    parser.add_argument("--keys", type=_positive, default=1_000_000, help="of sql_state: rows that are changed")
    parser.add_argument("--updates", type=_positive, default=3, help="of sql_state: changes of each of them")
    parser.add_argument("--queries", type=_queries, help="of nexmark, sql_state, or cases of cep: comma-separated")
    parser.add_argument("--format", choices=FORMATS, default="csv", help="of nexmark: format of the files of events")
    parser.add_argument("--small", action="store_true", help=f"of {', '.join(_SMALL)}: few keys, a short time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run and its summary here")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive whole number")
    return int(text)


def _peers(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    if unknown := set(names) - set(W1_PEERS):
        raise argparse.ArgumentTypeError(f"no peer {', '.join(sorted(unknown))}; there are {', '.join(W1_PEERS)}")
    return names


def _queries(text: str) -> list[str]:
    names = text.split(",")
    known = (*nexmark.QUERIES, *changing_rows.QUERIES, *CASES)
    if unknown := set(names) - set(known):
        there = ", ".join(known)
        raise argparse.ArgumentTypeError(f"no query {', '.join(sorted(unknown))}; there are {there}")
    return names


def _w1(asked: argparse.Namespace) -> list[Record]:
    contestants: list[Contestant] = [ours("w1", {"parallelism": 2})]
    contestants += [way for peer in asked.peers for way in W1_PEERS[peer]]
    cache = cache_directory()
    shares = [max(asked.words // way.divisor // WORDS_A_LINE, 1) * WORDS_A_LINE for way in contestants]
    given = [(way, words, word_file(cache / "data", words)) for way, words in zip(contestants, shares, strict=True)]
    return measure(given, asked.runs, cache, _say)


def _checkpoint_cost(asked: argparse.Namespace) -> list[Record]:
    words = max(asked.words // WORDS_A_LINE, 1) * WORDS_A_LINE
    cache = cache_directory()
    data = word_file(cache / "data", words)
    engines = ["ours", *(["flink"] if "flink" in asked.peers else [])]
    contestants = [way for engine in engines for way in checkpoint_cost(engine, asked.interval)]
    try:
        return measure([(way, words, data) for way in contestants], asked.runs, cache, _say)
    finally:
        shutil.rmtree(cache / FLINK_CHECKPOINTS, ignore_errors=True)


def _debloating_cost(asked: argparse.Namespace) -> list[Record]:
    words = max(asked.words // (16 if asked.small else 2) // WORDS_A_LINE, 1) * WORDS_A_LINE
    cache = cache_directory()
    data = word_file(cache / "data", words)
    ways = debloating_cost(_params(asked))
    return measure([(way, None, data) for way in ways], asked.runs, cache, _say)


def _state_large(asked: argparse.Namespace) -> list[Record]:
    from benchmarks.keyed_state.state_preload import sst_folder

    params, cache = _params(asked), cache_directory()
    _say("preparing the preloaded keys of ours, which are kept")
    preloaded = sst_folder(cache / "data", int(params.get("keys", KEYS)))
    given: list[tuple[Contestant, int | None, Path | None]] = [(ours(asked.name, params), None, preloaded)]
    if "flink" in asked.peers:
        given.append((flink_state_large(**params), None, None))
    return measure(given, asked.runs, cache, _say)


def _sql(asked: argparse.Namespace) -> list[Record]:
    rows = asked.rows // 10 if asked.small else asked.rows
    cache = cache_directory()
    given = [
        (way, None, bid_file(cache / "data", count))
        for query in QUERIES
        for count in (rows, 4 * rows)
        for way in sql(query, count, "flink" in asked.peers)
    ]
    return measure(given, asked.runs, cache, _say)


def _kafka_sql(asked: argparse.Namespace) -> list[Record]:
    events = EVENTS // 10 if asked.small else EVENTS
    _say(f"preparing a broker with {events:,} bids")
    with broker_with_bids(events) as servers:
        ways = kafka_sql(servers, events, "flink" in asked.peers)
        return measure([(way, None, None) for way in ways], asked.runs, cache_directory(), _say)


def _sql_latency(asked: argparse.Namespace) -> list[Record]:
    ways = sql_latency("flink" in asked.peers)
    return measure([(way, None, None) for way in ways], asked.runs, cache_directory(), _say)


def _nexmark(asked: argparse.Namespace) -> list[Record]:
    events = asked.rows // 10 if asked.small else asked.rows
    cache = cache_directory()
    _forget_rows(cache)
    _say("preparing the events, which are kept")
    queries = asked.queries or list(nexmark.QUERIES)
    ways = nexmark_ways(queries, (_NEXMARK_WARM, events, 4 * events), cache, asked.peers, asked.format)
    records = measure([(way, None, cache / "data") for way in ways], asked.runs, cache, _say, _NEXMARK_LIMIT_SECONDS)
    _compare_rows(queries, records, lambda name: kept_rows_folder(cache, name))
    shutil.rmtree(written_files_folder(cache, ""), ignore_errors=True)
    return records


def _compare_rows(queries: Sequence[str], records: Sequence[Record], folder: Callable[[str], Path]) -> None:
    """Tell whether the rows that contestants have kept of the first set are equal."""
    for query in queries:
        rows = {record.contestant.name: kept_rows(folder(record.contestant.name) / query)
                for record in records if record.results}  # fmt: skip
        first = next(iter(rows.values()), [])
        counts = ", ".join(
            f"{name} {len(own)}{'' if query in UNLIKE or own == first else ' OTHER ROWS'}" for name, own in rows.items()
        )
        _say(f"rows of {query}, first set: {counts}")


def _sql_state(asked: argparse.Namespace) -> list[Record]:
    keys = asked.keys // 10 if asked.small else asked.keys
    cache = cache_directory()
    shutil.rmtree(kept_rows_folder(cache, "", "sql-state"), ignore_errors=True)
    _say("preparing the rows, which are kept")
    queries = asked.queries or list(changing_rows.QUERIES)
    ways = sql_state_ways(queries, keys, asked.updates, cache, "flink" in asked.peers)
    records = measure([(way, None, cache / "data") for way in ways], asked.runs, cache, _say, _NEXMARK_LIMIT_SECONDS)
    _compare_rows(queries, records, lambda name: kept_rows_folder(cache, name, "sql-state"))
    return records


def _forget_rows(cache: Path) -> None:
    for folder in (kept_rows_folder(cache, ""), written_files_folder(cache, "")):
        shutil.rmtree(folder, ignore_errors=True)


def _cep(asked: argparse.Namespace) -> list[Record]:
    events = asked.rows // 10 if asked.small else asked.rows
    cache = cache_directory()
    _say("preparing the events, which are kept")
    keys = _CEP_KEYS // 10 if asked.small else _CEP_KEYS
    ways = cep_ways(asked.queries or CASES, (_CEP_WARM, events, 4 * events), keys, cache, "flink" in asked.peers)
    records = measure([(way, None, None) for way in ways], asked.runs, cache, _say, _NEXMARK_LIMIT_SECONDS)
    _say(f"matches of a case and number of events: {report.equal_counts(records, 'matches')}")
    return records


def _large_state(asked: argparse.Namespace) -> list[Record]:
    params = _params(asked)
    ways = [ours(asked.name, params), *(flink_large_state(asked.name, params) if "flink" in asked.peers else [])]
    return measure([(way, None, None) for way in ways], asked.runs, cache_directory(), _say)


def _ours_alone(asked: argparse.Namespace) -> list[Record]:
    contestants = [(ours(asked.name, _params(asked)), None, None)]
    if asked.name == "cluster_load":
        return measure(contestants, asked.runs, cache_directory(), _say, _CLUSTER_LIMIT_SECONDS)
    return measure(contestants, asked.runs, cache_directory(), _say)


def _params(asked: argparse.Namespace) -> dict[str, Any]:
    given = {name: value for name in _SIZED.get(asked.name, ()) if (value := getattr(asked, name)) is not None}
    return (_SMALL.get(asked.name, {}) if asked.small else {}) | given


def _in_flight(asked: argparse.Namespace) -> list[Record]:
    costs, hops, seconds = ((1.0,), (1,), 6) if asked.small else ((0.1, 1.0, 10.0, 100.0), (1, 2), 12)
    ways = in_flight(costs, hops, seconds, "flink" in asked.peers)
    cache = cache_directory()
    try:
        return measure([(way, None, None) for way in ways], asked.runs, cache, _say)
    finally:
        shutil.rmtree(cache / "flink-in-flight", ignore_errors=True)


_MEASURED = {
    "in_flight": _in_flight,
    "w1": _w1,
    "sql": _sql,
    "kafka_sql": _kafka_sql,
    "sql_latency": _sql_latency,
    "sql_state": _sql_state,
    "nexmark": _nexmark,
    "cep": _cep,
    "checkpoint_cost": _checkpoint_cost,
    "debloating_cost": _debloating_cost,
    "state_large": _state_large,
    **dict.fromkeys(_SIZED, _large_state),
}
"""Benchmarks that have peers; the others are ours alone."""
_SHOWN = {
    "in_flight": report.lines_table,
    "debloating_cost": report.lines_table,
    "w1": report.rates_table,
    "sql": report.slopes_table,
    "kafka_sql": report.side_by_side,
    "sql_latency": report.side_by_side,
    "sql_state": report.jobs_table,
    "nexmark": report.jobs_table,
    "cep": report.jobs_and_numbers,
    "checkpoint_cost": report.cost_table,
    **dict.fromkeys(("state_large", *_SIZED), report.side_by_side),
}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
