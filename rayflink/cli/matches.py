"""`rayflink state matches`: partial matches of patterns, in words."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING

from rayflink import launch
from rayflink.cep.saved_matches import saved_matches
from rayflink.state_processor import read_savepoint

from .given_options import configuration_of
from .jobs import one_job
from .script import FAILED, OK
from .states import carefully, json_line, options_of_storage

if TYPE_CHECKING:
    from rayflink.cep.saved_matches import SavedMatch


@carefully
def matches(chosen: argparse.Namespace) -> int:
    """Show the partial matches of a savepoint, a checkpoint or a running job, and return the exit code."""
    path = snapshot_path(chosen)
    if path is None:
        return FAILED
    savepoint = read_savepoint(path, options_of_storage(chosen))
    wanted = (match for match in saved_matches(savepoint, chosen.operator) if is_of_key(match, chosen.key))
    limited = list(islice(wanted, chosen.limit + 1)) if chosen.limit else list(wanted)
    shown = limited[: chosen.limit] if chosen.limit else limited
    for line in json_lines(shown) if chosen.json else lines(shown):
        print(line)
    if len(limited) > len(shown):
        print(f"only the first {chosen.limit} partial matches are shown; --limit 0 shows all", file=sys.stderr)
    return OK


def snapshot_path(chosen: argparse.Namespace) -> str | None:
    """Return the folder that is to be read: the one that was named, or the newest checkpoint of a running job.

    None, with a message, where there is none.
    """
    named = str(chosen.path)
    if "/" in named or Path(named).exists():
        return named
    chosen.job = named
    job = one_job(chosen)
    if job is None:
        return None
    newest = launch.attach(job["jid"], configuration_of(chosen)).checkpoints(None)["latest"]["completed"]
    if newest is None or not newest.get("external_path"):
        print(f"rayflink: job {named!r} has no completed checkpoint; take a savepoint by `rayflink savepoint {named}` "
              "and give its path", file=sys.stderr)  # fmt: skip
        return None
    path = str(newest["external_path"])
    print(f"of checkpoint {newest['id']} at {path}", file=sys.stderr)
    return path


def is_of_key(match: SavedMatch, key: str | None) -> bool:
    """Return whether a match is of a key in the form in which it is shown, or as JSON."""
    return key is None or key in (str(match.key), repr(match.key), json_line(match.key))


def lines(matches_by_key: Iterable[SavedMatch]) -> Iterator[str]:
    """Yield the lines for people."""
    is_empty = True
    for key, of_key in groupby(matches_by_key, lambda match: match.key):
        is_empty = False
        yield f"key {key}"
        for match in of_key:
            yield from (f"  {line}" for line in match.describe().splitlines())
    if is_empty:
        yield "no partial matches"


def json_lines(shown: Iterable[SavedMatch]) -> Iterator[str]:
    """Yield a JSON object for each partial match."""
    return (json_line(vars(match)) for match in shown)


__all__ = ["is_of_key", "json_lines", "lines", "matches", "snapshot_path"]
