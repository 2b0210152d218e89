"""`rayflink state`: show, compare and export what savepoints and checkpoints hold."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import shorten
from rayflink.common.metrics.job_report import moment
from rayflink.common.options.store_options import storage_options
from rayflink.common.text_output.plain_table import table
from rayflink.state.classes.plain_classes import only_plain_classes
from rayflink.state_processor import differences, read_savepoint
from rayflink.state_processor.sizes import count_rows, stored_states

from .argument_types import EXPORT_FORMATS
from .given_options import configuration_of
from .script import OK, USAGE

if TYPE_CHECKING:
    import pyarrow

    from rayflink.state_processor import SavedState, Savepoint, StateChanges

_NAMED = 5
"""The number of classes that are named at most."""
_WIDTH = 60
"""Characters of a value in a table."""


def carefully(command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Let a command read any snapshot: without --trust what it names is neither imported nor called."""

    @wraps(command)
    def run(chosen: argparse.Namespace) -> int:
        if chosen.trust:
            return command(chosen)
        with only_plain_classes() as refused:
            try:
                return command(chosen)
            finally:
                if refused:
                    named = sorted(refused)
                    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
                    problem = f"not imported because they are not plain types: {', '.join(named[:_NAMED])}{more}"
                    remedy = "their objects are shown by their fields; --trust imports and calls what it names"
                    print(f"rayflink: {problem}; {remedy}", file=sys.stderr)

    return run


@carefully
def show(chosen: argparse.Namespace) -> int:
    """Show operators and states, or the rows of one state, and return the exit code."""
    savepoint = _load(chosen, chosen.path)
    if chosen.state is None:
        print(_states_json(savepoint, chosen) if chosen.json else _states_table(savepoint, chosen))
        return OK
    state = savepoint.state(chosen.operator, chosen.state)
    rows = _rows(state.batches())
    limited = list(islice(rows, chosen.limit + 1)) if chosen.limit else list(rows)
    shown = limited[: chosen.limit] if chosen.limit else limited
    _print_rows(state.schema.names, shown, chosen.json)
    if len(limited) > len(shown):
        print(f"only the first {chosen.limit} rows are shown; --limit 0 shows all", file=sys.stderr)
    return OK


@carefully
def diff(chosen: argparse.Namespace) -> int:
    """Show what differs between two savepoints, or the rows of one state that do, and return the exit code."""

    before, after = _load(chosen, chosen.before), _load(chosen, chosen.after)
    state_changes: Iterable[StateChanges] = differences(before, after)
    if chosen.operator is not None:
        ids = {
            savepoint.operator(chosen.operator).id for savepoint in (before, after) if _has(savepoint, chosen.operator)
        }
        ids = ids or {after.operator(chosen.operator).id}
        uids = {operator.uid or operator.name for savepoint in (before, after) for operator in savepoint.operators
                if operator.id in ids}  # fmt: skip
        state_changes = [changes for changes in state_changes if changes.operator in uids]
    if chosen.state is not None:
        state_changes = [changes for changes in state_changes if changes.state == chosen.state]
        if not state_changes:
            after.operator(chosen.operator).state(chosen.state)
        for changes in state_changes:
            differing = changes.to_arrow()
            _print_rows(differing.column_names, differing.to_pylist(), chosen.json)
        return OK
    rows = [(changes.operator, changes.state, *changes.counts().values()) for changes in state_changes]
    if not chosen.all:
        rows = [row for row in rows if any(row[2:])]
    names = ("operator", "state", "added", "removed", "changed")
    if chosen.json:
        _print_rows(names, [dict(zip(names, row, strict=True)) for row in rows], True)
    else:
        print(table(names, rows) if rows else "no differences")
    return OK


@carefully
def export(chosen: argparse.Namespace) -> int:
    """Write the rows of a state to a file and return the exit code."""
    target = Path(chosen.file)
    form = chosen.format or target.suffix.lstrip(".")
    if form not in EXPORT_FORMATS:
        wanted = ", ".join(f".{name}" for name in EXPORT_FORMATS)
        print(f"rayflink: {target} is to be written as {form or 'nothing'!r}, wanted one of {wanted}; "
              "end its name so, or give --format", file=sys.stderr)  # fmt: skip
        return USAGE
    state = _load(chosen, chosen.path).state(chosen.operator, chosen.state)
    try:
        written = write(state, target, form)
    except OSError as error:
        print(f"rayflink: cannot write {target}: {error.strerror or error}; give a file in a folder that exists "
              "and can be written", file=sys.stderr)  # fmt: skip
        return USAGE
    print(f"{written} rows of state {state.name!r} written to {target}")
    return OK


def write(state: SavedState, target: Path, form: str) -> int:
    """Write a state to a file, part by part, and return the number of rows.

    Args:
        form: "parquet"; "csv", in which structs and lists are JSON; or "json": a JSON object a line.
    """
    schema, count = state.schema, 0
    if form == "parquet":
        from pyarrow import parquet

        with parquet.ParquetWriter(str(target), schema) as writer:
            for batch in state.batches():
                writer.write_batch(batch)
                count += batch.num_rows
        return count
    with target.open("w", encoding="utf-8", newline="") as file:
        if form == "csv":
            import csv

            lines = csv.writer(file)
            lines.writerow(schema.names)
            take: Callable[[dict[str, Any]], object] = lambda row: lines.writerow(map(_flat, row.values()))  # noqa: E731
        else:
            take = lambda row: file.write(json_line(row) + "\n")  # noqa: E731
        for row in _rows(state.batches()):
            take(row)
            count += 1
    return count


def _load(chosen: argparse.Namespace, path: str) -> Savepoint:
    return read_savepoint(path, options_of_storage(chosen))


def options_of_storage(chosen: argparse.Namespace) -> dict[str, str]:
    """Return the options of the storage that a savepoint lies in."""
    return storage_options(configuration_of(chosen).to_dict())


def _has(savepoint: Savepoint, operator: str) -> bool:
    return any(operator in (candidate.uid, candidate.id, candidate.name) for candidate in savepoint.operators)


def _states_table(savepoint: Savepoint, chosen: argparse.Namespace) -> str:
    manifest = savepoint.manifest
    head = (
        f"{manifest.kind} {manifest.checkpoint_id} of job {manifest.job_name!r} ({manifest.job_id}), "
        f"{moment(manifest.timestamp_ms)}, "
        f"{len(manifest.operators)} operators"
    )
    columns = ["uid", "operator", "state", "kind", "values", "bytes", "entries", "largest key group"]
    rows = [
        [
            operator.uid or "-", shorten_text(operator.name), state["name"], state["kind"], state["values"] or "-",
            state["bytes"], _entries_text(state), _largest_text(state["largest_group"]),
        ]
        for operator, state in stored_states(savepoint, chosen.operator)
    ]  # fmt: skip
    if chosen.count:
        columns.append("rows")
        for row, (operator, state) in zip(rows, stored_states(savepoint, chosen.operator), strict=True):
            row.append(count_rows(operator, state))
    return f"{head}\n\n{table(columns, rows)}" if rows else f"{head}, no state"


def _states_json(savepoint: Savepoint, chosen: argparse.Namespace) -> str:
    manifest = savepoint.manifest
    states = [
        {
            "operator_id": operator.id, "uid": operator.uid, "operator": operator.name, "state": state["name"],
            "kind": state["kind"], "values": state["values"] or "", "ttl_ms": _ttl_ms(state),
            "parallelism": operator.parallelism, "max_parallelism": operator.max_parallelism,
            **{name: state[name] for name in ("bytes", "written_bytes", "entries", "is_estimate", "largest_group",
                                              "key_groups")},
            **({"rows": count_rows(operator, state)} if chosen.count else {}),
        }
        for operator, state in stored_states(savepoint, chosen.operator)
    ]  # fmt: skip
    about = {
        "kind": manifest.kind,
        "id": manifest.checkpoint_id,
        "job_id": manifest.job_id,
        "job_name": manifest.job_name,
    }
    return json.dumps({**about, "timestamp": manifest.timestamp_ms, "states": states}, indent=2)


def _ttl_ms(state: dict[str, Any]) -> int | None:
    text = str(state["ttl"] or "").partition(" ")[0]
    return int(text) if text.isdigit() else None


def _entries_text(state: dict[str, Any]) -> Any:
    if state["entries"] is None:
        return "-"
    return f"about {state['entries']:,}" if state["is_estimate"] else state["entries"]


def _largest_text(largest: dict[str, Any] | None) -> str:
    return "-" if largest is None else f"{largest['group']} ({largest['share']:.0%})"


def _rows(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _print_rows(names: Sequence[str], rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        for row in rows:
            print(json_line(row))
    else:
        print(table(names, [[_cell(row[name]) for name in names] for row in rows]) if rows else "no rows")


def _cell(value: object) -> Any:
    if value is None or isinstance(value, str):
        return value if value is None else shorten_text(value)
    return value if isinstance(value, float) else shorten_text(json_line(value))


def shorten_text(text: str) -> str:
    """Shorten a string for a cell of a table."""
    return text if len(text) <= _WIDTH else shorten(text, _WIDTH + 2).strip("'")


def _flat(value: object) -> Any:
    return json_line(value) if isinstance(value, (dict, list)) else value


def json_line(value: object) -> str:
    """Return a value as one line of JSON; what JSON has no form for as a string, bytes in hexadecimal digits."""
    return json.dumps(
        value, default=lambda part: part.hex() if isinstance(part, bytes) else str(part), ensure_ascii=False
    )


__all__ = ["EXPORT_FORMATS", "carefully", "diff", "export", "json_line", "options_of_storage", "show", "write"]
