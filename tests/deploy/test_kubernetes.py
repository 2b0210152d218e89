"""The manifests of deploy/kubernetes fit the schemas of Kubernetes and KubeRay, and are what the chart makes."""

from __future__ import annotations

import copy
import importlib.metadata
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.servers.bring_servers import HELM
from rayflink.common.options.option_sources import given_options
from tests.deploy.cloud_files import ROOT
from tests.deploy.kubernetes_schemas import manifests, pod_templates, refusals

CHART, MODES = ROOT / "deploy" / "helm" / "rayflink", ("session", "application")
HELM_COMMAND = shutil.which("helm") or (str(HELM) if HELM.exists() else None)
needs_helm = pytest.mark.skipif(
    HELM_COMMAND is None, reason="helm is not here: python -m benchmarks.servers.bring_servers helm"
)


def file_of(mode: str) -> Path:
    return ROOT / "deploy" / "kubernetes" / f"{mode}.yaml"


def objects(mode: str) -> dict[str, dict[str, Any]]:
    """By kind and name."""
    return {f"{each['kind']} {each['metadata']['name']}": each for each in manifests(file_of(mode).read_text())}


def ray_cluster(mode: str) -> dict[str, Any]:
    spec: dict[str, Any] = objects(mode)["RayCluster rayflink" if mode == "session" else "RayJob rayflink"]["spec"]
    return spec if mode == "session" else dict(spec["rayClusterSpec"])


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    assert HELM_COMMAND is not None
    return subprocess.run([HELM_COMMAND, *map(str, arguments)], capture_output=True, text=True)


def rendered(*options: str) -> str:
    ended = helm("template", "rayflink", CHART, "--namespace", "default", *options)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_each_object_fits_its_schema(mode: str) -> None:
    for name, each in objects(mode).items():
        assert refusals(each) == [], name


def test_the_schemas_refuse_what_the_servers_would_refuse() -> None:
    cluster = objects("session")["RayCluster rayflink"]
    for change, message in (
        ({"headGroupSpecs": {}}, "'headGroupSpecs' was unexpected"),
        ({"authOptions": {"mode": "tokens"}}, "'tokens' is not one of"),
        ({"workerGroupSpecs": [{"groupName": "slots"}]}, "'template' is a required property"),
    ):
        wrong = copy.deepcopy(cluster)
        wrong["spec"].update(change)
        assert any(message in refusal for refusal in refusals(wrong)), refusals(wrong)
    claim = copy.deepcopy(objects("session")["PersistentVolumeClaim rayflink-data"])
    claim["spec"]["acessModes"] = claim["spec"].pop("accessModes")
    assert "acessModes" in str(refusals(claim))


@pytest.mark.parametrize("mode", MODES)
def test_each_container_is_bounded_and_without_rights(mode: str) -> None:
    pods = [pod for each in objects(mode).values() for pod in pod_templates(each)]
    assert len(pods) == 3 + (mode == "application")
    for pod in pods:
        security = pod["securityContext"]
        assert security["runAsNonRoot"] and security["runAsUser"] > 0
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert {"cpu", "memory"} <= set(container["resources"]["limits"])
            assert not container["securityContext"]["allowPrivilegeEscalation"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert ":" in container["image"] and not container["image"].endswith(":latest")
            assert "livenessProbe" in container or container["name"] == "submitter"


@pytest.mark.parametrize("mode", MODES)
def test_a_cluster_needs_tokens_grows_by_itself_and_outlives_its_head(mode: str) -> None:
    cluster = ray_cluster(mode)
    assert cluster["authOptions"] == {"mode": "token", "secretName": "rayflink-secrets"}
    assert cluster["enableInTreeAutoscaling"] and cluster["autoscalerOptions"]["version"] == "v2"
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert cluster["rayVersion"] == importlib.metadata.version("ray")
    host, _, port = cluster["gcsFaultToleranceOptions"]["redisAddress"].partition(":")
    (served,) = objects(mode)[f"Service {host}"]["spec"]["ports"]
    assert str(served["port"]) == port
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        variables = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
        assert variables["RAY_gcs_rpc_server_reconnect_timeout_s"] == "600"
        assert pod.get("restartPolicy", "Never") == "Never"  # the autoscaler takes no other
        assert {"ray-logs", "shared-mem", "options", "data"} == {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}


def test_the_dispatcher_is_beside_the_head_and_has_a_service() -> None:
    head, dispatcher = ray_cluster("session")["headGroupSpec"]["template"]["spec"]["containers"]
    assert (head["name"], dispatcher["name"]) == ("ray-head", "dispatcher")
    assert "exec rayflink cluster run -D rest.bind-address=0.0.0.0 -D rest.port=8081" in dispatcher["args"][0]
    secrets = {each["name"]: each.get("valueFrom") for each in dispatcher["env"]}
    assert secrets["REST_TOKEN"] == {"secretKeyRef": {"name": "rayflink-secrets", "key": "rest_token"}}
    assert "readinessProbe" not in dispatcher and "startupProbe" not in dispatcher
    service = objects("session")["Service rayflink-rest"]["spec"]
    assert service["ports"][0]["targetPort"] in {port["name"] for port in dispatcher["ports"]}
    (alone,) = ray_cluster("application")["headGroupSpec"]["template"]["spec"]["containers"]
    assert alone["name"] == "ray-head"


@pytest.mark.parametrize("mode", MODES)
def test_the_options_of_the_config_map_are_options_of_rayflink(mode: str, tmp_path: Path) -> None:
    (tmp_path / "rayflink.yaml").write_text(objects(mode)["ConfigMap rayflink-options"]["data"]["rayflink.yaml"])
    options = given_options({"RAYFLINK_CONF_DIR": str(tmp_path)})
    assert options.get_string("high-availability.storageDir") == "/data/ha"
    assert not options.unknown_options()


@needs_helm
@pytest.mark.parametrize("mode", MODES)
def test_the_manifests_are_what_the_chart_makes_of_its_values(mode: str) -> None:
    made = rendered("--set", f"mode={mode}")
    if os.environ.get("RAYFLINK_WRITE_GOLDEN"):
        file_of(mode).write_text(made)
    assert made == file_of(mode).read_text()


@needs_helm
@pytest.mark.slow
def test_the_chart_passes_the_linter_and_other_values_fit_the_schemas() -> None:
    ended = helm("lint", "--strict", CHART)
    assert ended.returncode == 0, ended.stdout
    values = ["storage.url=s3://bucket/rayflink", "redis.address=10.0.0.1:6379", "serviceAccountName=rayflink",
              "image.pullSecrets[0].name=registry", "workers[0].nodeSelector.pool=slots", "networkPolicy.enabled=false",
              "workers[0].name=slots", "workers[0].minReplicas=0", "workers[0].maxReplicas=3",
              "workers[0].resources.requests.cpu=2", "workers[0].resources.limits.cpu=2",
              "workers[0].resources.limits.memory=8Gi"]  # fmt: skip
    made = manifests(rendered("--set-string", "workers[0].resources.limits.cpu=2", *with_sets(values)))
    assert sorted(each["kind"] for each in made) == ["ConfigMap", "RayCluster", "Service"]
    assert [refusal for each in made for refusal in refusals(each)] == []
    assert "checkpointing.dir: s3://bucket/rayflink/checkpoints" in str(made)
    assert manifests(rendered("--set", "redis.enabled=false"))[-1]["spec"].get("gcsFaultToleranceOptions") is None


def with_sets(values: list[str]) -> list[str]:
    """Arguments of helm; amounts are strings."""
    flags = ["--set-string" if ".resources." in value else "--set" for value in values]
    return [word for flag, value in zip(flags, values, strict=True) for word in (flag, value)]


@needs_helm
@pytest.mark.slow
def test_the_chart_refuses_values_that_it_does_not_know() -> None:
    for wrong in ("mode=cluster", "redis.adress=10.0.0.1:6379", "storage.url=bucket", "workers=null"):
        ended = helm("template", "rayflink", CHART, "--set", wrong)
        assert ended.returncode != 0 and "values don't meet the specifications of the schema" in ended.stderr, wrong


def test_the_chart_has_the_version_of_the_package() -> None:
    chart, version = yaml.safe_load((CHART / "Chart.yaml").read_text()), importlib.metadata.version("rayflink")
    assert (chart["version"], chart["appVersion"]) == (version, version)
    assert yaml.safe_load((CHART / "values.yaml").read_text())["image"]["tag"] == version
