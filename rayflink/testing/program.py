"""A program as a simulated run takes it: a job graph, or an environment in which one was written."""

from __future__ import annotations

from typing import Protocol

from rayflink.graph.job_graph import JobGraph


class Program(Protocol):
    """An environment of `rayflink.datastream` with a program."""

    def get_job_graph(self) -> JobGraph:
        """Return the job of the program."""
        ...


def graph_of(program: JobGraph | Program) -> JobGraph:
    """Return the job graph of a program."""
    return program if isinstance(program, JobGraph) else program.get_job_graph()


__all__ = ["Program", "graph_of"]
