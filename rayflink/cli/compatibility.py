"""`rayflink savepoint check`: what would become of each state if a program began from a savepoint."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from rayflink.common.options.store_options import storage_options
from rayflink.common.text_output.plain_table import table
from rayflink.datastream.environment import intercepted
from rayflink.state_processor import check_savepoint, read_savepoint

from .given_options import configuration_of, of_command_line
from .plans import PlannedJob
from .script import FAILED, OK, USAGE, run_script

if TYPE_CHECKING:
    from rayflink.graph.job_graph import JobGraph
    from rayflink.graph.stream_graph import StreamGraph
    from rayflink.state_processor import StateVerdict


def check(chosen: argparse.Namespace, words: list[str]) -> int:
    """Print for each state whether it is kept, migrated or refused; the exit code is 1 if one is refused."""
    if len(words) < 2:
        print("rayflink: give the program and the savepoint: check JOB.py SAVEPOINT", file=sys.stderr)
        return USAGE
    configuration_of(chosen)
    program, path, *arguments = words
    savepoint = read_savepoint(path, storage_options(configuration_of(chosen).to_dict()))
    ids = {operator.id for operator in savepoint.operators}
    candidates: list[tuple[int, tuple[StateVerdict, ...]]] = []

    def keep(stream: StreamGraph, graph: JobGraph) -> PlannedJob:
        known = sum(node.operator_id in ids for vertex in graph.vertices for node in vertex.operators)
        verdicts = check_savepoint(graph, savepoint, chosen.allow_non_restored_state, not chosen.no_open)
        candidates.append((known, verdicts))
        return PlannedJob(stream, graph)

    with intercepted(keep), redirect_stdout(sys.stderr):  # what the script prints is not the answer
        code = run_script(program, [*arguments, *chosen.script_arguments], of_command_line(chosen).to_dict())
    if not candidates:
        if code == OK:
            print(f"rayflink: {program} called no execute(), so there is nothing to check", file=sys.stderr)
        return code or FAILED
    _, verdicts = max(candidates, key=lambda pair: pair[0])  # of several jobs the one that has most of the operators
    refused = any(verdict.verdict == "refuse" for verdict in verdicts)
    if chosen.json:
        states = [dataclasses.asdict(verdict) for verdict in verdicts]
        print(json.dumps({"restores": not refused, "states": states}, indent=2))
    else:
        rows = [(verdict.operator, verdict.state, verdict.verdict, verdict.reason or "-") for verdict in verdicts]
        print(table(("operator", "state", "verdict", "why"), rows) if rows else "the savepoint contains no state")
        print(f"\nthe program {'cannot' if refused else 'can'} start from this savepoint")
    return FAILED if refused else OK


__all__ = ["check"]
