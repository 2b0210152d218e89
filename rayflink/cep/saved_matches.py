"""Partial matches in savepoints and checkpoints, for people and programs.

They are those of `CEP.pattern`, of `CEP.patterns`, and of MATCH_RECOGNIZE. An operator stores with them what their
states mean (`pattern_meaning`), so they are shown without the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from rayflink.common.errors import shorten
from rayflink.common.metrics.job_report import moment
from rayflink.state.classes.unknown_objects import loads_leniently
from rayflink.state.errors import StateError
from rayflink.user_types import UserKey

from .nfa.automaton import StateKind
from .nfa.partial_matches import LAST_TIME, NODE, START_TIME, STATE, KeyMatches, PartialMatch, events_of
from .nfa.raw_values import raw_column
from .pattern_meaning import MATCHES, MEANING, ROW_MATCHES, PatternMeaning, PatternName

if TYPE_CHECKING:
    from rayflink.state_processor import Savepoint
    from rayflink.state_processor.savepoint import OperatorState

_WIDTH = 100
"""Characters of an event in words."""


class NoPartialMatches(StateError):
    """An operator has no partial matches that can be shown.

    Args:
        operator: its uid or name.
        problem: what it lacks.
        remedy: what to do.
    """

    def __init__(self, operator: str, problem: str, remedy: str) -> None:
        super().__init__(operator, problem, remedy)
        self.operator, self.problem, self.remedy = operator, problem, remedy

    def __str__(self) -> str:
        return f"{self.operator} {self.problem}; {self.remedy}"


@dataclass(frozen=True)
class SavedMatch:
    """A partial match of a key. Times are epoch milliseconds.

    Args:
        key: of its events.
        waits_for: the steps of the pattern that may take its next event, or the one that must not come.
        events: those that it has, by the names of their steps.
        began: time of its first event.
        last: time of its last event.
        over: when it times out, or becomes a match where it only waits for an event that must not come; None: never.
        kind: "waiting"; "pending", where it becomes a match unless an event of the step comes; or "complete", where
            it is a match that an earlier partial match may drop.
        pattern_id, version: of the rule that it is of, in an operator of `CEP.patterns`; else None.
    """

    key: UserKey
    waits_for: tuple[str, ...]
    events: dict[str, list[Any]]
    began: int
    last: int
    over: int | None
    kind: str
    pattern_id: str | None = None
    version: int | None = None

    def describe(self) -> str:
        """Return it in words, a line for each step.

        >>> match = SavedMatch("ann", ("paid",), {"order": [("order", 7)]}, 1_000, 1_000, 61_000, "waiting")
        >>> print(match.describe())
        waits for 'paid': began 1970-01-01 00:00:01, times out 1970-01-01 00:01:01
          order: ('order', 7)
        """
        began = f"began {_time(self.began)}"
        over = "never" if self.over is None else _time(self.over)
        steps = " or ".join(map(repr, self.waits_for))
        if self.kind == "complete":
            head = f"is complete, and waits for partial matches that began earlier: {began}"
        elif self.kind == "pending":
            head = f"is a match unless {steps} comes: {began}, certain {over}"
        else:
            head = f"waits for {steps}: {began}, times out {over}"
        if self.pattern_id is not None:
            head = f"of {self.pattern_id!r}, version {self.version}, {head}"
        events = [f"  {name}: {', '.join(shorten(event, _WIDTH) for event in part)}"
                 for name, part in self.events.items()]  # fmt: skip
        return "\n".join([head, *events])


def _time(timestamp_ms: int) -> str:
    milliseconds = f".{timestamp_ms % 1000:03}" if timestamp_ms % 1000 else ""
    return f"{moment(timestamp_ms)}{milliseconds}"


def saved_matches(
    savepoint: Savepoint, operator: str | None = None, key: UserKey | None = None
) -> Iterator[SavedMatch]:
    """Yield the partial matches in a savepoint or checkpoint, key by key, those of a key in the order of their begin.

    Args:
        savepoint: as `rayflink.state_processor.read_savepoint` returns it.
        operator: uid, name or id of the operator; None: the one that matches a pattern.
        key: the key of a keyed stream; None: all keys.

    Raises:
        NotInSavepointError: there is no such operator.
        NoPartialMatches: it matches no pattern, or several do and none is named.
    """
    chosen = pattern_operator(savepoint, operator)
    meanings = _meanings(chosen)
    entries = _row_entries(chosen, meanings) if ROWS in meanings else _entries(chosen)
    for owner, stored in entries:
        if key is None or owner == key:
            for name, matches in stored.items():
                yield from _of_key(owner, matches, _meaning(chosen, meanings, name))


def pattern_operator(savepoint: Savepoint, operator: str | None) -> OperatorState:
    """Return the operator that matches a pattern; see `saved_matches`."""
    if operator is not None:
        chosen = savepoint.operator(operator)
        if not _has_matches(chosen):
            remedy = f"operators with patterns are {_named(savepoint)}"
            raise NoPartialMatches(f"operator {operator!r}", "has no partial matches", remedy)
        return chosen
    candidates = [state for state in savepoint.operators if _has_matches(state)]
    if len(candidates) != 1:
        problem = (
            "has several operators that match patterns" if candidates else "has no operator that matches a pattern"
        )
        remedy = f"name one of {_named(savepoint)}" if candidates else (
            "one of MATCH_RECOGNIZE is shown if this build or a later one has written it"
        )  # fmt: skip
        raise NoPartialMatches("the savepoint", problem, remedy)
    return candidates[0]


def _has_matches(operator: OperatorState) -> bool:
    return any(state.name in (MATCHES, MEANING) for state in operator.states)


def _named(savepoint: Savepoint) -> str:
    names = [repr(state.uid or state.name) for state in savepoint.operators if _has_matches(state)]
    return ", ".join(names) or "not in it"


ROWS = "rows"
"""Stands for the name of a pattern of rows."""
_Meanings: TypeAlias = "dict[PatternName | str | None, PatternMeaning]"
_Matches: TypeAlias = "dict[PatternName | str | None, KeyMatches]"


def _meanings(operator: OperatorState) -> _Meanings:
    """Return the meanings by the names of patterns; None for the only one."""
    meanings: _Meanings = {}
    for state in operator.states:
        if state.name == MEANING:
            for row in state.rows():
                meaning: PatternMeaning = row.value
                meanings[ROWS if "columns" in meaning else meaning.get("pattern")] = meaning
    return meanings


def _meaning(operator: OperatorState, meanings: _Meanings, name: PatternName | str | None) -> PatternMeaning:
    if name not in meanings:
        remedy = f"restore the job and take a new savepoint, or read the state {MATCHES!r} as it is"
        raise NoPartialMatches(f"operator {operator.uid or operator.name!r}", "was written by an older build", remedy)
    return meanings[name]


def _entries(operator: OperatorState) -> Iterator[tuple[UserKey, _Matches]]:
    """Yield the keys of an operator of events, with their partial matches by the names of patterns."""
    for row in operator.state(MATCHES).rows():
        yield row.key, row.value if isinstance(row.value, dict) else {None: row.value}


def _row_entries(operator: OperatorState, meanings: _Meanings) -> Iterator[tuple[UserKey, _Matches]]:
    """Yield the same of an operator of rows: values of the columns of PARTITION BY, one without a tuple around it."""
    columns = pa.ipc.read_schema(pa.BufferReader(meanings[ROWS]["columns"]))
    for _, data in operator.contents.raw_groups():
        for frame in _frames(data):
            keys = [column.to_pylist() for column in frame.columns[:-1]]
            for place, entry in enumerate(frame.column(ROW_MATCHES).to_pylist()):
                matches, *_ = loads_leniently(entry)
                if matches is not None:
                    owner = tuple(column[place] for column in keys)
                    yield owner[0] if len(owner) == 1 else owner, {ROWS: _with_names(matches, columns)}


def _frames(data: bytes) -> Iterator[pa.RecordBatch]:
    """Yield the frames of a key group that have partial matches."""
    source = pa.BufferReader(data)
    while source.tell() < source.size():
        with pa.ipc.open_stream(source) as reader:
            yield from (frame for frame in reader if ROW_MATCHES in frame.schema.names)


def _with_names(matches: KeyMatches, columns: pa.Schema) -> KeyMatches:
    """Return the partial matches of rows with dicts for rows."""
    partial, completed = (
        [_named_match(match, columns) for match in part] for part in (matches.partial, matches.completed)
    )
    return KeyMatches(partial, completed)


def _named_match(match: PartialMatch, columns: pa.Schema) -> PartialMatch:
    path, node = [], match[NODE]
    while node is not None:
        path.append(node)
        node = node[3]
    for step, number, values, _ in reversed(path):
        row = {field.name: raw_column([value], field.type)[0].as_py()
               for value, field in zip(values, columns, strict=True) if field.name}  # fmt: skip
        node = step, number, row, node
    return (match[STATE], node, *match[START_TIME:])


def _of_key(key: UserKey, matches: KeyMatches, meaning: PatternMeaning) -> Iterator[SavedMatch]:
    for match in matches.partial:
        yield _saved(key, match, meaning, False)
    for match in sorted(matches.completed, key=lambda completed: completed[START_TIME]):
        yield _saved(key, match, meaning, True)


def _saved(key: UserKey, match: PartialMatch, meaning: PatternMeaning, is_complete: bool) -> SavedMatch:
    waits_for, kind, since_last = meaning["states"][match[STATE]]
    limits = [
        since + window
        for since, window in ((match[START_TIME], meaning["window_ms"]), (match[LAST_TIME], since_last))
        if window is not None
    ]
    kind = "complete" if is_complete else "pending" if kind == StateKind.PENDING.value else "waiting"
    events = events_of(match[NODE], tuple(meaning["steps"]))
    over = None if is_complete else min(limits, default=None)
    pattern_id, version = meaning.get("pattern") or (None, None)
    names = (pattern_id, version) if pattern_id else (None, None)
    return SavedMatch(key, waits_for, events, match[START_TIME], match[LAST_TIME], over, kind, *names)


__all__ = ["NoPartialMatches", "SavedMatch", "pattern_operator", "saved_matches"]
