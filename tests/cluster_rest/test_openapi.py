"""The description of all requests: it names each of them, and requests made from it never fail the server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rayflink.cluster.rest.openapi.openapi_document import openapi_document
from rayflink.cluster.rest.openapi.openapi_endpoints import OpenApiEndpoints
from rayflink.cluster.rest.typed_requests import TypedEndpoint
from rayflink.serving.json_requests import JsonRequest, Role, Route
from tests.cluster.watching import eventually
from tests.cluster_rest.flink_clients.live_cluster import LiveCluster, live_cluster
from tests.cluster_rest.known_jobs import Requests

REFUSED = {501: "jars, job graphs of Java", 503: "rescaling as in Flink, a profiler that is not installed"}
"""Statuses from 500 on that say what there is not."""
_OWN = re.compile(r"/$|/favicon.ico|/index.html|/ui/|/rayflink/")
"""Files of pages, and requests that Flink does not have."""
LEFT_OUT = re.compile(r"POST .*/profiler$|.*/news$|.*/rows$|.*/result$")
"""A profile goes on for minutes, and requests for news, rows and results wait for them."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    with live_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def described(*routes: Route) -> dict[str, Any]:
    return json.loads(json.dumps(openapi_document(routes)))


def test_routes_are_described_by_their_functions() -> None:
    def answer(request: JsonRequest) -> list[int]:
        """Return the first numbers.

        And nothing else.
        """
        return [1, 2]

    typed = TypedEndpoint(answer, None, dict[str, int], "Numbers", 202)
    document = described(Route("POST", "/jobs/{jobid}/numbers", typed, Role.OPERATE))
    operation = document["paths"]["/jobs/{jobid}/numbers"]["post"]
    assert (operation["summary"], operation["x-role"]) == ("Return the first numbers.", "OPERATE")
    (parameter,) = operation["parameters"]
    assert (parameter["name"], parameter["schema"]["pattern"]) == ("jobid", "^[0-9a-fA-F]{32}$")
    schema = operation["responses"]["202"]["content"]["application/json"]["schema"]
    assert schema == {"type": "array", "items": {"type": "integer"}}
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"type": "object", "additionalProperties": {"type": "integer"}}


def test_a_path_with_the_version_is_listed_once() -> None:
    routes = [Route("GET", path, lambda request: b"", Role.READ) for path in ("/jobs", "/v1/jobs", "/v1/alone")]
    assert sorted(described(*routes)["paths"]) == ["/jobs", "/v1/alone"]


def test_the_page_escapes_what_it_shows() -> None:
    def answer(request: JsonRequest) -> dict[str, int]:
        """Return <script>."""
        return {}

    requests = Requests(*OpenApiEndpoints([Route("GET", "/<b>", answer, Role.READ)]).routes())
    page = requests.send("GET", "/openapi")[1]
    assert b"Return &lt;script&gt;." in page and b"GET /&lt;b&gt;" in page and b"<script" not in page


def test_every_request_of_a_cluster_says_what_it_does(cluster: LiveCluster) -> None:
    document = cluster.get("/openapi.json")
    operations = {
        f"{method.upper()} {path}": operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert len(operations) > 90
    assert len({operation["operationId"] for operation in operations.values()}) == len(operations)
    silent = [title for title, operation in operations.items() if not operation["summary"]]
    assert [title for title in silent if not _OWN.match(title.partition(" ")[2])] == []


@pytest.mark.slow  # a job takes checkpoints
def test_sizes_of_state_have_the_fields_that_are_described_and_no_others(cluster: LiveCluster) -> None:
    document = cluster.get("/openapi.json")
    answers = document["paths"]["/rayflink/jobs/{job}/state"]["get"]["responses"]["200"]
    for described_object in document["components"]["schemas"].values():
        described_object["additionalProperties"] = False
    schema = {**answers["content"]["application/json"]["schema"], "components": document["components"]}
    job_id = cluster.submit("running")

    def state() -> dict[str, Any]:
        answer: dict[str, Any] = cluster.get(f"/rayflink/jobs/{job_id}/state")
        jsonschema.validate(answer, schema)
        return answer

    def has_sizes() -> bool:
        return any(one["bytes"] and one["largest_group"] for own in state()["operators"] for one in own["states"])

    assert "reason" in state()
    assert eventually(has_sizes, 60)


def _send(cluster: LiveCluster, most: int, every: int = 1) -> dict[str, int]:
    """Send requests that are made from the description, and return the number of answers by status.

    Ids of the running job are put into requests that read alone: others would write files where a text says.
    """
    schemathesis = pytest.importorskip("schemathesis", reason="pip install schemathesis")
    schema = schemathesis.openapi.from_dict(cluster.get("/openapi.json"))
    names = {"jobid": cluster.submit("running"), **cluster.names()}
    statuses: dict[str, int] = {}
    for result in [*schema.get_all_operations()][::every]:
        operation = result.ok()
        title = f"{operation.method.upper()} {operation.path}"
        if LEFT_OUT.fullmatch(title) is None:
            _send_of(operation, title, cluster, names, most, statuses)
    return statuses


def _send_of(
    operation: Any, title: str, cluster: LiveCluster, names: dict[str, str], most: int, statuses: dict[str, int]
) -> None:
    reads = operation.method.upper() == "GET" and not title.endswith("yarn-cancel")

    @settings(
        max_examples=most, derandomize=True, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(operation.as_strategy(), st.booleans())
    def send(case: Any, is_known: bool) -> None:
        if is_known and reads:
            case.path_parameters |= {name: names[name] for name in case.path_parameters if name in names}
        answer = case.call(base_url=cluster.server.url, headers={"Authorization": f"Bearer {cluster.server.token}"})
        statuses[str(answer.status_code)] = statuses.get(str(answer.status_code), 0) + 1
        assert answer.status_code < 500 or answer.status_code in REFUSED, f"{title}: {answer.text[:2000]}"
        if answer.status_code < 300:
            operation.validate_response(answer)

    send()


@pytest.mark.slow  # dozens of requests
def test_no_request_fails_the_server(cluster: LiveCluster) -> None:
    statuses = _send(cluster, 2, every=5)
    assert statuses["200"] > 5 and statuses["404"] > 5, statuses


@pytest.mark.soak  # thousands of requests
@pytest.mark.timeout(380)
def test_no_request_of_thousands_fails_the_server(cluster: LiveCluster) -> None:
    assert sum(_send(cluster, 40).values()) > 2_000
