"""Writes Grafana's dashboards of a rayflink cluster: `python deploy/grafana/build_dashboards.py`.

Each panel is one line here; the JSON files beside this one are what Grafana imports. Their queries read the metrics
of a dispatcher's `/metrics`. A test runs every query against a real Prometheus that scrapes a running job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SOURCE = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
SCHEMA_VERSION = 38
JOB = 'job_name=~"$job_name"'
TASK = f'{JOB},task_name=~"$task_name"'
T, OP, J = "flink_taskmanager_job_task_", "flink_taskmanager_job_task_operator_", "flink_jobmanager_job_"
NAME, VERTEX, OPERATOR = "{{job_name}}", "{{task_name}}", "{{operator_name}}"
LAST, LEAST = "9223372036854775807", "-9223372036854775808"
"""Watermarks of the end of a stream and of its beginning, which are no times."""


@dataclass(frozen=True)
class Panel:
    """A panel.

    Args:
        title: at its top.
        queries: (PromQL, legend) each.
        unit: of its values, as Grafana calls it.
        type: timeseries, stat, bargauge or table.
        width: of 24.
        height: in rows of Grafana's grid.
        about: what it shows, and when it is bad.
        red: the value from which on a stat is red; None: never.
    """

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    type: str = "timeseries"
    width: int = 8
    height: int = 7
    about: str = ""
    red: float | None = None


@dataclass(frozen=True)
class Row:
    """A heading, and the panels below it."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Board:
    """A dashboard.

    Args:
        file: name of its file, and the end of its uid.
        title: in Grafana.
        rows: of panels.
        variables: its drop-down lists: name -> query.
    """

    file: str
    title: str
    about: str
    rows: tuple[Row, ...]
    variables: tuple[tuple[str, str], ...] = ()


def stat(title: str, query: str, unit: str = "short", red: float | None = None, about: str = "") -> Panel:
    return Panel(title, ((query, ""),), unit, "stat", 4, 4, about, red)


def graph(title: str, *queries: tuple[str, str], unit: str = "short", width: int = 8, about: str = "") -> Panel:
    return Panel(title, queries, unit, width=width, about=about)


def summed(metric: str, by: str = "job_name, task_name", where: str = TASK) -> str:
    return f"sum by ({by}) ({metric}{{{where}}})"


def greatest(metric: str, by: str = "job_name, task_name", where: str = TASK) -> str:
    return f"max by ({by}) ({metric}{{{where}}})"


def event_time(metric: str, where: str) -> str:
    """Return the series of a watermark that are times."""
    return f"({metric}{{{where}}} < {LAST} > {LEAST})"


JOB_NAMES = ("job_name", f"label_values({J}uptime, job_name)")
TASK_NAMES = ("task_name", f"label_values({T}numRecordsIn{{{JOB}}}, task_name)")

OVERVIEW = Board("overview", "rayflink: overview", "All jobs of a cluster, and its dispatcher.", (
    Row("Jobs", (
        stat("Running", "sum(flink_jobmanager_numRunningJobs)"),
        stat("Restarting or failing", 'sum(rayflink_jobs{state=~"RESTARTING|FAILING"})', red=1),
        stat("Failed", 'sum(rayflink_jobs{state="FAILED"})', red=1, about="Jobs that the cluster remembers."),
        stat("Waiting for slots", "sum(rayflink_job_waiting_for_slots) or vector(0)", red=1),
        stat("Slots", "sum(flink_jobmanager_taskSlotsTotal)"),
        stat("Free slots", "sum(flink_jobmanager_taskSlotsAvailable)"),
        graph("Jobs by state", ("sum by (state) (rayflink_jobs) > 0", "{{state}}")),
        graph("Restarts in 10 minutes", (f"sum by (job_name) (delta({J}numRestarts[10m]))", NAME)),
        graph("Records received", (summed(f"{T}numRecordsInPerSecond", "job_name", ""), NAME), unit="recps",
              about="By all tasks of a job."),
        graph("Watermark lag of sources", (greatest(f"{OP}watermarkLag", "job_name", ""), NAME), unit="ms",
              about="How far the slowest source is behind the clock."),
        graph("Back-pressure", (f"max by (job_name) ({T}backPressuredTimeMsPerSecond) / 1000", NAME),
              unit="percentunit",
              about="Of the most back-pressured task: the part of its time that it waits for its consumers."),
        graph("Since the last checkpoint", (
            f"(time() * 1000 - {J}lastCheckpointCompletedTimestamp) and {J}lastCheckpointCompletedTimestamp > 0", NAME),
            unit="ms"),
        Panel("States", (("rayflink_job_state", ""),), type="table", width=24),
    )),
    Row("Dispatcher", (
        graph("Requests", ("sum by (status) (rate(rayflink_http_requests_total[$__rate_interval]))", "{{status}}"),
              unit="reqps"),
        graph("Time to answer", *(
            (f"histogram_quantile({part}, sum by (le) "
             "(rate(rayflink_http_request_duration_seconds_bucket[$__rate_interval])))", f"p{name}")
            for part, name in ((0.5, "50"), (0.99, "99"))), unit="s"),
        graph("Registry", ("sum by (operation, result) (rate(rayflink_registry_requests_total[$__rate_interval]))",
                           "{{operation}} {{result}}"), unit="ops"),
        graph("Memory", ("process_resident_memory_bytes{job=~\"$scrape_job\"}", "{{instance}}"), unit="bytes"),
        graph("Processor", ("rate(process_cpu_seconds_total{job=~\"$scrape_job\"}[$__rate_interval])", "{{instance}}")),
        graph("Files and threads", ("process_open_fds{job=~\"$scrape_job\"}", "files {{instance}}"),
              ("process_threads{job=~\"$scrape_job\"}", "threads {{instance}}")),
    )),
), (("scrape_job", "label_values(rayflink_build_info, job)"),))

ONE_JOB = Board("job", "rayflink: job", "One job, vertex by vertex.", (
    Row("Job", (
        stat("Uptime", f"max({J}uptime{{{JOB}}})", "ms"),
        stat("Restarts", f"max({J}numRestarts{{{JOB}}})", red=1),
        stat("Down for", f"max({J}downtime{{{JOB}}})", "ms", red=1),
        stat("Late records dropped", f"sum({OP}numLateRecordsDropped{{{JOB}}}) or vector(0)", red=1),
        stat("Completed checkpoints", f"max({J}numberOfCompletedCheckpoints{{{JOB}}})"),
        stat("Failed checkpoints", f"max({J}numberOfFailedCheckpoints{{{JOB}}})", red=1),
    )),
    Row("Records", (
        graph("Records received", (summed(f"{T}numRecordsInPerSecond"), VERTEX), unit="recps"),
        graph("Records sent", (summed(f"{T}numRecordsOutPerSecond"), VERTEX), unit="recps"),
        graph("Bytes received", (summed(f"{T}numBytesInPerSecond"), VERTEX), unit="Bps"),
        graph("Records by operator", (summed(f"{OP}numRecordsOutPerSecond", "operator_name"), OPERATOR), unit="recps"),
        graph("Skew", (f"{greatest(f'{T}numRecordsIn')} / {greatest(f'{T}numRecordsIn').replace('max', 'avg', 1)} > 0",
                       VERTEX), unit="none",
              about="Records of the subtask with most, over the mean; 1 is even, the number of subtasks the worst."),
        graph("Restarts", (f"{J}numRestarts{{{JOB}}}", NAME)),
    )),
    Row("Time of tasks", (
        graph("Busy", (f"{greatest(f'{T}busyTimeMsPerSecond')} / 1000", VERTEX), unit="percentunit"),
        graph("Back-pressured", (f"{greatest(f'{T}backPressuredTimeMsPerSecond')} / 1000", VERTEX), unit="percentunit"),
        graph("Idle", (f"{greatest(f'{T}idleTimeMsPerSecond')} / 1000", VERTEX), unit="percentunit"),
        graph("Input buffers", (greatest(f"{T}Shuffle_Netty_Input_Buffers_inPoolUsage"), VERTEX), unit="percentunit"),
        graph("Output buffers", (greatest(f"{T}Shuffle_Netty_Output_Buffers_outPoolUsage"), VERTEX),
              unit="percentunit"),
        graph("Queues", (summed(f"{T}Shuffle_Netty_Input_Buffers_inputQueueLength"), f"in {VERTEX}"),
              (summed(f"{T}Shuffle_Netty_Output_Buffers_outputQueueLength"), f"out {VERTEX}")),
    )),
    Row("Event time", (
        graph("Watermark lag by operator", (
            f"time() * 1000 - min by (operator_name) {event_time(f'{OP}currentInputWatermark', TASK)}", OPERATOR),
            unit="ms", width=12),
        graph("Watermark lag of sources", (greatest(f"{OP}watermarkLag", "operator_name"), OPERATOR), unit="ms",
              width=12),
    )),
), (JOB_NAMES, TASK_NAMES))

CHECKPOINTS = Board("checkpoints", "rayflink: checkpoints", "Checkpoints of a job: how long, how large, how often.", (
    Row("Checkpoints", (
        stat("Completed", f"max({J}numberOfCompletedCheckpoints{{{JOB}}})"),
        stat("Failed", f"max({J}numberOfFailedCheckpoints{{{JOB}}})", red=1),
        stat("Under way", f"max({J}numberOfInProgressCheckpoints{{{JOB}}})"),
        stat("Last completed", f"max({J}lastCompletedCheckpointId{{{JOB}}})"),
        stat("Interval", f"max({J}checkpointIntervalMs{{{JOB}}})", "ms"),
        stat("Restored", f"max({J}lastCheckpointRestoreTimestamp{{{JOB}}} > 0) or vector(0)", "dateTimeFromNow"),
        graph("Duration", (f"{J}lastCheckpointDuration{{{JOB}}} >= 0", NAME), unit="ms"),
        graph("Size", (f"{J}lastCheckpointSize{{{JOB}}} >= 0", f"{NAME} written"),
              (f"{J}lastCheckpointFullSize{{{JOB}}} >= 0", f"{NAME} whole"),
              (f"{J}lastCheckpointPersistedData{{{JOB}}} >= 0", f"{NAME} in flight"), unit="bytes"),
        graph("Since the last one", (
            f"(time() * 1000 - {J}lastCheckpointCompletedTimestamp{{{JOB}}}) "
            f"and {J}lastCheckpointCompletedTimestamp{{{JOB}}} > 0", NAME), unit="ms"),
        graph("Failures in 10 minutes", (f"delta({J}numberOfFailedCheckpoints{{{JOB}}}[10m])", NAME)),
        graph("Completed in 10 minutes", (f"delta({J}numberOfCompletedCheckpoints{{{JOB}}}[10m])", NAME)),
        graph("Triggered", (f"{J}totalNumberOfCheckpoints{{{JOB}}}", NAME)),
    )),
    Row("Tasks", (
        graph("Alignment", (f"{greatest(f'{T}checkpointAlignmentTime')} / 1e6", VERTEX), unit="ms",
              about="Of the newest checkpoint: from the first barrier of a task to its last."),
        graph("Start delay", (f"{greatest(f'{T}checkpointStartDelayNanos')} / 1e6", VERTEX), unit="ms",
              about="Of the newest checkpoint: from its trigger to the first barrier."),
        graph("Oldest barrier that waits", (greatest(f"{T}oldestBarrierWaitingTimeMs"), VERTEX), unit="ms"),
    )),
), (JOB_NAMES, TASK_NAMES))

STATE = Board("state", "rayflink: state", "State of a job: its size, its memory, its disks.", (
    Row("State", (
        graph("Size in checkpoints", (f"{J}lastCheckpointFullSize{{{JOB}}} >= 0", NAME), unit="bytes"),
        graph("Expired entries", (summed(f"{OP}state_numStateEntriesExpired", "operator_name, state"),
                                  "{{operator_name}} {{state}}"), about="Of states with a time to live."),
        graph("Expired entries of SQL", (summed(f"{OP}numStateEntriesExpired", "operator_name"), OPERATOR)),
        graph("Managed memory of SQL operators", (summed(f"{OP}stateMemory", "operator_name"), OPERATOR), unit="bytes"),
        graph("Spilled by SQL operators", (summed(f"{OP}spilledBytes", "operator_name"), OPERATOR), unit="bytes"),
        graph("Restored at", (f"{J}lastCheckpointRestoreTimestamp{{{JOB}}} > 0", NAME), unit="dateTimeAsIso"),
    )),
    Row("Processes", (
        graph("Managed memory", ("sum by (host) (flink_taskmanager_Status_Flink_Memory_Managed_Used)", "{{host}} used"),
              ("sum by (host) (flink_taskmanager_Status_Flink_Memory_Managed_Total)", "{{host}} total"), unit="bytes"),
        graph("Memory left for functions", ("min by (host) (flink_taskmanager_rayflink_Status_Memory_Remaining)",
                                            "{{host}}"), unit="bytes"),
        graph("Free disk", ("min by (host) (flink_taskmanager_rayflink_Status_Disk_Free / "
                            "flink_taskmanager_rayflink_Status_Disk_Total)", "{{host}}"), unit="percentunit",
              about="Of the disk of io.tmp.dirs and state.backend.rocksdb.localdir that has the least free."),
    )),
), (JOB_NAMES, TASK_NAMES))

SOURCES = Board("sources-sinks", "rayflink: sources and sinks", "What comes in, what goes out, and what is lost.", (
    Row("Sources", (
        graph("Pending records", (summed(f"{OP}pendingRecords", "operator_name"), OPERATOR),
              about="Records of Kafka behind the end of their partitions: the lag."),
        graph("Greatest lag of a partition", (greatest(f"{OP}KafkaSourceReader_KafkaConsumer_records_lag_max",
                                                       "operator_name"), OPERATOR)),
        graph("Read", (f"sum by (operator_name, topic) (rate("
                       f"{OP}KafkaSourceReader_topic_partition_currentOffset{{{TASK}}}[$__rate_interval]))",
                       "{{operator_name}} {{topic}}"), unit="recps"),
        graph("Committed offsets behind", (
            f"sum by (operator_name, topic) ({OP}KafkaSourceReader_topic_partition_currentOffset{{{TASK}}} - "
            f"{OP}KafkaSourceReader_topic_partition_committedOffset{{{TASK}}})", "{{operator_name}} {{topic}}")),
        graph("Failed commits and outages", (summed(f"{OP}KafkaSourceReader_commitsFailed", "operator_name"),
                                             f"commits {OPERATOR}"),
              (summed(f"{OP}KafkaSourceReader_numBrokerOutages", "operator_name"), f"outages {OPERATOR}")),
        graph("Watermark lag", (greatest(f"{OP}watermarkLag", "operator_name"), OPERATOR), unit="ms"),
        graph("Ahead of the slowest", (greatest(f"{OP}watermarkAlignmentDrift", "operator_name"), OPERATOR), unit="ms",
              about="With watermark alignment."),
        graph("Idle sources", (summed(f"{OP}isIdle", "operator_name"), OPERATOR), about="Subtasks without records."),
        graph("Retries at object stores", (summed(f"{OP}numStoreRetries", "operator_name"), OPERATOR)),
    )),
    Row("Losses", (
        graph("Late records", (summed(f"{OP}numLateRecordsDropped", "operator_name"), OPERATOR),
              about="Dropped, as their windows were over."),
        graph("Without a timestamp", (summed(f"{OP}numNullTimestampsDropped", "operator_name"), OPERATOR)),
        graph("Malformed", (summed(f"{OP}numRecordsInErrors", "operator_name"), OPERATOR)),
    )),
    Row("Sinks", (
        graph("Records sent", (f"sum by (operator_name) (rate({OP}numRecordsSend{{{TASK}}}[$__rate_interval]))",
                               OPERATOR), unit="recps"),
        graph("Commits", (summed(f"{OP}successfulCommittables", "operator_name"), f"committed {OPERATOR}"),
              (summed(f"{OP}failedCommittables", "operator_name"), f"failed {OPERATOR}")),
        graph("Waiting for a commit", (summed(f"{OP}pendingCommittables", "operator_name"), OPERATOR)),
        graph("Reconnects", (summed(f"{OP}numReconnects", "operator_name"), OPERATOR)),
        graph("Queued for Kafka", (summed(f"{OP}queuedMessages", "operator_name"), OPERATOR)),
        graph("Async requests in flight", (summed(f"{OP}inFlightRequests", "operator_name"), OPERATOR)),
    )),
), (JOB_NAMES, TASK_NAMES))

BOARDS = (OVERVIEW, ONE_JOB, CHECKPOINTS, STATE, SOURCES)


def document(board: Board) -> dict[str, Any]:
    """Return a dashboard in Grafana's format for import: the data source is chosen when it is imported."""
    links = [
        {"asDropdown": False, "icon": "dashboard", "includeVars": True, "keepTime": True, "tags": [],
         "targetBlank": False, "title": other.title.partition(": ")[2], "tooltip": "", "type": "link",
         "url": f"/d/rayflink-{other.file}"}
        for other in BOARDS if other is not board
    ]  # fmt: skip
    types = sorted({panel.type for row in board.rows for panel in row.panels})
    return {
        "__inputs": [{"name": "DS_PROMETHEUS", "label": "Prometheus", "description": "", "type": "datasource",
                      "pluginId": "prometheus", "pluginName": "Prometheus"}],
        "__requires": [
            {"type": "grafana", "id": "grafana", "name": "Grafana", "version": "10.1.0"},
            {"type": "datasource", "id": "prometheus", "name": "Prometheus", "version": "1.0.0"},
            *({"type": "panel", "id": name, "name": name, "version": ""} for name in types),
        ],
        "uid": f"rayflink-{board.file}",
        "title": board.title,
        "description": board.about,
        "tags": ["rayflink", "flink"],
        "style": "dark",
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "links": links,
        "annotations": {"list": []},
        "templating": {"list": [_variable(name, query) for name, query in board.variables]},
        "panels": list(_panels(board)),
    }  # fmt: skip


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name, "label": name.replace("_", " "), "type": "query", "datasource": SOURCE, "hide": 0,
        "skipUrlSync": False, "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1,
        "multi": True, "includeAll": True, "allValue": ".*", "regex": "", "options": [],
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }  # fmt: skip


def _panels(board: Board) -> Iterator[dict[str, Any]]:
    number, y = 1, 0
    for row in board.rows:
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "panels": [],
               "gridPos": {"h": 1, "w": 24, "x": 0, "y": y}}  # fmt: skip
        number, y, x, below = number + 1, y + 1, 0, 0
        for panel in row.panels:
            if x + panel.width > 24:
                x, y, below = 0, y + below, 0
            yield _panel(panel, number, {"h": panel.height, "w": panel.width, "x": x, "y": y})
            number, x, below = number + 1, x + panel.width, max(below, panel.height)
        y += below


def _panel(panel: Panel, number: int, position: dict[str, int]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.red is not None:
        steps.append({"color": "red", "value": panel.red})
    instant = panel.type == "table"
    targets = [
        {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": query, "legendFormat": legend or "__auto",
         "range": not instant, "instant": instant, **({"format": "table"} if instant else {})}
        for index, (query, legend) in enumerate(panel.queries)
    ]  # fmt: skip
    defaults: dict[str, Any] = {
        "unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}, "mappings": [],
        "color": {"mode": "thresholds" if panel.type == "stat" else "palette-classic"},
        "custom": {"lineWidth": 1, "fillOpacity": 8, "showPoints": "auto"} if panel.type == "timeseries" else {},
    }  # fmt: skip
    return {
        "id": number, "type": panel.type, "title": panel.title, "description": panel.about, "datasource": SOURCE,
        "gridPos": position, "transparent": False, "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []}, "options": _OPTIONS.get(panel.type, {}),
    }  # fmt: skip


_OPTIONS: dict[str, dict[str, Any]] = {
    "timeseries": {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
                   "tooltip": {"mode": "multi", "sort": "desc"}},
    "stat": {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value",
             "graphMode": "area", "textMode": "auto", "justifyMode": "auto", "orientation": "auto"},
    "table": {"showHeader": True, "cellHeight": "sm"},
}  # fmt: skip


def text(board: Board) -> str:
    """Return the file of a dashboard."""
    return json.dumps(document(board), indent=2) + "\n"


if __name__ == "__main__":
    for each in BOARDS:
        (FOLDER / f"{each.file}.json").write_text(text(each), encoding="utf-8")
