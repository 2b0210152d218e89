"""Requests of Flink that programs in Java send, answered with what to do here instead."""

from __future__ import annotations

import msgspec

from rayflink.serving.json_requests import JsonRequest, Refusal, Role, Route

from .typed_requests import Empty, TypedEndpoint, versioned

__all__ = ["AbsentRequests"]

_REMEDY = (
    "run the program with `rayflink run -D execution.target=remote PROGRAM.py`; it is Python, so there are "
    "no jars"
)


class JarList(msgspec.Struct, frozen=True):
    """The jars of the cluster.

    Args:
        address: of the server.
        files: none.
    """

    address: str
    files: list[Empty]


class AbsentRequests:
    """Refuses jars, and job graphs of Java.

    Source: apache/flink flink-runtime-web JarUploadHandler and its neighbours, JobSubmitHandler.
    """

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        jars, job_graph = TypedEndpoint(self._refuse_jar), TypedEndpoint(self._refuse_job_graph)
        return [
            *versioned("GET", "/jars", TypedEndpoint(self._jars), Role.READ),
            *versioned("POST", "/jars/upload", jars, Role.SUBMIT),
            *versioned("DELETE", "/jars/{jarid}", jars, Role.SUBMIT),
            *versioned("GET", "/jars/{jarid}/plan", jars, Role.READ),
            *versioned("POST", "/jars/{jarid}/plan", jars, Role.SUBMIT),
            *versioned("POST", "/jars/{jarid}/run", jars, Role.SUBMIT),
            *versioned("POST", "/jobs", job_graph, Role.SUBMIT),
        ]

    def _jars(self, request: JsonRequest) -> JarList:
        """Return the jars of the cluster, of which there are none."""
        host = request.headers.get("host", "")
        return JarList(f"http://{host}" if host else "", [])

    def _refuse_jar(self, request: JsonRequest) -> Empty:
        """Refuse a jar."""
        raise Refusal(501, f"jars are not run here; {_REMEDY}")

    def _refuse_job_graph(self, request: JsonRequest) -> Empty:
        """Refuse a job graph of Java."""
        raise Refusal(501, f"job graphs of Java are not run here; {_REMEDY}")
