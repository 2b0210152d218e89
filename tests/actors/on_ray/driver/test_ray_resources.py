"""What Ray's own records say of an autoscaler, and what becomes of a job that the cluster is too small for."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from rayflink.actors.on_ray.driver import ray_resources
from rayflink.common.errors import JobExecutionError

BY_HAND = "node_d35714e7b2175cf1658400f85854e4facce37cd91e380ac2880873cf"


def report(active, pending_nodes=(), pending_launches=None, idle=None):
    nodes = {"active_nodes": dict.fromkeys(active, 1), "idle_nodes": idle}
    pending = {"pending_nodes": list(pending_nodes), "pending_launches": pending_launches or {}}
    return json.dumps({"time": 1.0, "autoscaler_report": {**nodes, **pending}}).encode()


@pytest.mark.parametrize(
    ("status", "is_version_2", "found"),
    [
        (report([BY_HAND]), b"0", False),
        (report([BY_HAND, BY_HAND[:-1] + "0"]), None, False),
        (report([], idle={BY_HAND: 1}), b"0", False),
        (report(["ray.head.default"]), b"0", True),
        (report([BY_HAND, "workergroup"]), b"0", True),
        (report([], idle={"workergroup": 1}), b"0", True),
        (report([BY_HAND], pending_launches={"worker": 2}), b"0", True),
        (report([BY_HAND], pending_nodes=[["10.0.0.1", "worker", "launching"]]), b"0", True),
        (None, b"1", True),
        (report([BY_HAND]), b"1", True),
        (None, b"0", None),
        (None, None, None),
        (report([]), b"0", None),
        (b'{"load_metrics_report": {}}', b"0", None),
        (b'{"autoscaler_report": {"active_nodes": {}}}', b"0", None),
        (b'{"autoscaler_report": null}', b"0", None),
        (b"[]", b"0", None),
        (b"no json", b"0", None),
        (b"\xff", b"0", None),
    ],
)
def test_an_autoscaler_is_known_by_the_types_of_its_nodes(status, is_version_2, found):
    assert ray_resources.autoscaler_in(status, is_version_2) is found


def test_nobody_knows_where_the_control_service_does_not_answer(monkeypatch):
    def gone(*key, **where):
        raise ConnectionError("gone")

    monkeypatch.setattr(ray_resources, "_internal_kv_get", gone)
    assert ray_resources.has_autoscaler() is None


def test_both_records_are_read_where_ray_keeps_them(monkeypatch):
    kept = {("__autoscaling_status", None): report([BY_HAND]), ("__autoscaler_v2_enabled", "__autoscaler"): b"0"}
    monkeypatch.setattr(ray_resources, "_internal_kv_get", lambda key, namespace=None: kept[key, namespace])
    assert ray_resources.has_autoscaler() is False
    kept["__autoscaler_v2_enabled", "__autoscaler"] = b"1"
    assert ray_resources.has_autoscaler() is True


@pytest.mark.parametrize(
    ("lack", "grows", "refused"),
    [("3 CPU", False, True), ("3 CPU", None, False), ("3 CPU", True, False), ("", False, False)],
)
def test_a_job_is_refused_where_nobody_adds_what_it_lacks(monkeypatch, lack, grows, refused):
    monkeypatch.setattr(ray_resources, "lacking", lambda graph, slot_cpus: lack)
    monkeypatch.setattr(ray_resources, "has_autoscaler", lambda: grows)
    graph = SimpleNamespace(id="0f")
    if not refused:
        return ray_resources.refuse_lack(graph, 1.0)
    with pytest.raises(JobExecutionError) as caught:
        ray_resources.refuse_lack(graph, 1.0)
    assert str(caught.value).startswith("job 0f was not started: it wants 3 CPU, and the cluster has no autoscaler")
    assert "lower the parallelism" in caught.value.remedy and "--allow-waiting" in caught.value.remedy


def test_who_may_bring_the_nodes_is_said():
    assert "waits for nodes of the autoscaler, at most slot.request.timeout" in ray_resources.waiting_for("3 CPU", True)
    for grows in (False, None):
        assert "wants 3 CPU: it waits for more nodes" in ray_resources.waiting_for("3 CPU", grows)


def test_the_names_are_those_of_the_installed_ray():
    from ray._private import ray_constants
    from ray._raylet import GCS_AUTOSCALER_STATE_NAMESPACE, GCS_AUTOSCALER_V2_ENABLED_KEY
    from ray.autoscaler._private.util import format_readonly_node_type

    assert ray_resources._STATUS == ray_constants.DEBUG_AUTOSCALING_STATUS
    assert ray_resources._VERSION_2 == (GCS_AUTOSCALER_V2_ENABLED_KEY, GCS_AUTOSCALER_STATE_NAMESPACE)
    assert format_readonly_node_type("0" * 56) == f"node_{'0' * 56}"
    assert ray_resources._ADDED_BY_HAND.fullmatch(format_readonly_node_type(BY_HAND[5:]))
