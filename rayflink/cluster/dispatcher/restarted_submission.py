"""The submission of a job that is a new start of another one: its stored program, and what is different."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rayflink.actors.job.submission import JobChanges, Stored
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError, PlanError
from rayflink.common.options import registry as options
from rayflink.common.text_output.masked import MASK, shown_value
from rayflink.launch.remote_submission import RemoteSubmission

from ..jobs.cluster_job import Document
from .job_defaults import PREFIXES

__all__ = ["RestartChanges", "ensure_changeable", "restarted_submission"]

FORWARD = "FORWARD"
"""The strategy of edges at whose ends there are as many subtasks."""
_OF_START = (options.RESTORE_PATH, options.IGNORE_UNCLAIMED_STATE)
_TAKEN_WHEN_COMPILED = (
    "an option that is read when a program is compiled",
    "one of checkpoints, state, restarts, slots, metrics or logs",
)


@dataclass(frozen=True)
class RestartChanges:
    """The differences that somebody wants between a job and its new start.

    Args:
        allow_non_restored_state: state that belongs to no operator is left behind.
        parallelism: vertex or operator -> subtasks; by uid, by name, or by the beginning of an id.
        options: option key -> value.
    """

    allow_non_restored_state: bool = False
    parallelism: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


def ensure_changeable(chosen: Mapping[str, str]) -> None:
    """Check options that a job should be started with.

    Raises:
        ConfigError: there is no such option, its value does not parse, or it has no effect on a compiled program.
    """
    configuration = Configuration.from_dict(dict(chosen))
    for key, near in configuration.unknown_options().items():
        remedy = f"did you mean {near[0]}?" if near else "`rayflink config` lists all options"
        raise ConfigError(key, "an option that nothing reads", "one that rayflink knows", remedy)
    of_start = {key for option in _OF_START for key in (option.key, *option.fallback_keys)}
    for key in chosen:
        option = options.by_key().get(key)
        if key in of_start:
            raise ConfigError(key, "an option", "where to start from as a choice of its own", "choose it beside them")
        if not (option.key if option is not None else key).startswith(PREFIXES):
            raise ConfigError(key, *_TAKEN_WHEN_COMPILED, "run the program again with it (-D), and -s for its state")
    configuration.check()


def restarted_submission(
    earlier: RemoteSubmission, ran: Mapping[str, int], job_id: str, start_from: str, changes: RestartChanges
) -> RemoteSubmission:
    """Return the submission of a new job by the program of an earlier one.

    Args:
        earlier: as it was stored.
        ran: vertex id -> subtasks, as the earlier job ran last.
        job_id: of the new job.
        start_from: checkpoint or savepoint; "": none.
        changes: that are wanted.

    Raises:
        ConfigError: an option is wrong.
        PlanError: there is no such vertex, or it cannot have that many subtasks.
    """
    ensure_changeable(changes.options)
    before = earlier.submission.changes
    chosen = {**({} if before is None else before.configuration), **changes.options}
    vertices = [{**vertex, "parallelism": ran.get(vertex["id"], vertex["parallelism"])}
                for vertex in earlier.description["vertices"]]  # fmt: skip
    parallelism = {vertex["id"]: vertex["parallelism"] for vertex in vertices} | _wanted(vertices, changes.parallelism)
    different = JobChanges(
        earlier.job_id if before is None else before.program_id, job_id, start_from,
        changes.allow_non_restored_state, chosen, parallelism,
    )  # fmt: skip
    configuration = _configuration(earlier.description["configuration"], different)
    description = {
        **earlier.description,
        "jid": job_id,
        "configuration": {key: shown_value(key, value) for key, value in sorted(configuration.items())},
        "vertices": [{**vertex, "parallelism": parallelism[vertex["id"]]} for vertex in vertices],
    }
    inner = replace(
        earlier.submission, changes=different, owner_timeout_ms=None, ends_at=None, start_number=0
    )
    stored = _place(earlier, job_id, configuration)
    return replace(earlier, job_id=job_id, description=description, stored=stored, submission=inner)


def _configuration(before: Mapping[str, str], different: JobChanges) -> dict[str, str]:
    """Return the options of the job, as far as they are known here: secrets of the program are masked."""
    replaced = {key for option in _OF_START for key in (option.key, *option.fallback_keys)}
    for key in different.configuration:
        option = options.by_key().get(key)
        replaced |= {key} if option is None else {option.key, *option.fallback_keys}
    configuration = {key: value for key, value in before.items() if key not in replaced} | dict(different.configuration)
    if different.start_from:
        configuration[options.RESTORE_PATH.key] = different.start_from
        configuration[options.IGNORE_UNCLAIMED_STATE.key] = str(different.allow_non_restored_state).lower()
    return configuration


def _place(earlier: RemoteSubmission, job_id: str, configuration: Mapping[str, str]) -> Stored | None:
    """Return where the job is stored; its store is reached as that of the earlier job, whose secrets are known."""
    known = {key: value for key, value in configuration.items() if MASK not in value}
    place = Stored.of_options(job_id, known, earlier.description.get("mode") == "BATCH")
    if place is None or earlier.stored is None:
        return place
    return Stored(place.url, {**earlier.stored.options, **place.options})


def _wanted(vertices: list[dict[str, Any]], parallelism: Mapping[str, int]) -> dict[str, int]:
    """Return vertex id -> subtasks of the vertices that are named, and of those that are joined with them."""
    chosen: dict[str, int] = {}
    for name, number in parallelism.items():
        for vertex in _joined(vertices, _meant(vertices, name)):
            most = vertex["max_parallelism"]
            if not 1 <= number <= most:
                raise PlanError(f"{vertex['name']!r} cannot have {number} subtasks", f"choose from 1 to {most}")
            if chosen.setdefault(vertex["id"], number) != number:
                problem = f"{vertex['name']!r} should have {chosen[vertex['id']]} and {number} subtasks"
                raise PlanError(f"{problem}: the operators named are joined", "name one of them")
    return chosen


def _meant(vertices: list[dict[str, Any]], name: str) -> Document:
    named = [vertex for vertex in vertices if name in _names(vertex)]
    if not named and len(name) >= 4:
        named = [vertex for vertex in vertices if any(known.startswith(name) for known in _ids(vertex))]
    if len(named) != 1:
        known = ", ".join(repr(vertex["name"]) for vertex in named or vertices)
        problem = f"{name!r} means {len(named)} vertices" if named else f"the job has no operator {name!r}"
        raise PlanError(problem, f"name one of {known}, by uid or id where names are the same")
    return named[0]


def _ids(vertex: Document) -> Iterator[str]:
    yield vertex["id"]
    yield from (operator["id"] for operator in vertex["operators"])


def _names(vertex: Document) -> set[str]:
    names = {vertex["name"], *_ids(vertex)}
    for operator in vertex["operators"]:
        own = operator["name"]
        names |= {own, own.removeprefix("Source: ").removeprefix("Sink: "), operator["uid"] or own}
    return names


def _joined(vertices: list[dict[str, Any]], vertex: Document) -> list[dict[str, Any]]:
    """Return a vertex and those that are connected with it by forward edges: they have one parallelism."""
    edges = [
        {reader["id"], edge["id"]} for reader in vertices for edge in reader["inputs"]
        if edge["ship_strategy"] == FORWARD
    ]  # fmt: skip
    joined, before = {vertex["id"]}, 0
    while len(joined) > before:
        before = len(joined)
        joined.update(*(edge for edge in edges if edge & joined))
    return [candidate for candidate in vertices if candidate["id"] in joined]
