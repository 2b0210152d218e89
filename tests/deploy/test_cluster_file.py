"""cluster.yaml, as it is and with each of its commented variants in place of AWS, is what `ray up` takes."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from rayflink.common.options.option_sources import given_options
from tests.deploy.cloud_files import CLOUDS, ROOT, chosen, ready


@pytest.fixture(params=CLOUDS)
def cloud(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cluster(cloud: str) -> dict[str, Any]:
    return dict(yaml.safe_load(chosen(cloud)))


def test_the_ready_file_of_a_cloud_is_what_cluster_yaml_says_of_it(cluster: dict[str, Any], cloud: str) -> None:
    file, wanted = ROOT / "deploy" / "clouds" / f"{cloud}.yaml", ready(cloud)
    if os.environ.get("RAYFLINK_WRITE_GOLDEN"):
        file.write_text(wanted, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == wanted
    assert yaml.safe_load(wanted) == cluster
    assert [line for line in wanted.splitlines() if line.startswith("# ---") or "comment" in line] == []


def ray_folder() -> Path:
    spec = find_spec("ray")
    assert spec is not None and spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def test_it_fits_rays_schema(cluster: dict[str, Any], cloud: str) -> None:
    schema = json.loads((ray_folder() / "autoscaler" / "ray-schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(cluster, schema)
    assert cluster["provider"]["type"] == cloud
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**cluster, "max_worker": 3}, schema)


@pytest.mark.slow  # imports Ray
def test_ray_itself_takes_it(cluster: dict[str, Any]) -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    prepared = prepare_config(cluster)
    validate_config(prepared)
    workers = prepared["available_node_types"]["worker"]
    assert (workers["min_workers"], workers["max_workers"], prepared["max_workers"]) == (2, 8, 8)
    assert prepared["available_node_types"][prepared["head_node_type"]]["resources"]["CPU"] == 0


def test_its_machines_have_the_fields_of_rays_own_examples(cluster: dict[str, Any], cloud: str) -> None:
    defaults = ray_folder() / "autoscaler" / cloud / "defaults.yaml"
    theirs = yaml.safe_load(defaults.read_text(encoding="utf-8"))
    known = {name for kind in theirs["available_node_types"].values() for name in kind["node_config"]}
    more = {"aws": {"IamInstanceProfile", "BlockDeviceMappings"}, "gcp": {"serviceAccounts"}, "azure": set()}[cloud]
    for kind in cluster["available_node_types"].values():
        assert set(kind["node_config"]) <= known | more
    assert set(cluster["provider"]) <= set(theirs["provider"]) | {"cache_stopped_nodes"}


def test_every_node_has_the_wheel_and_the_token(cluster: dict[str, Any]) -> None:
    assert cluster["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"
    assert cluster["file_mounts"]["~/rayflink-wheel"] == "./dist"
    assert any("pip install" in command and "[cluster,s3,gateway]" in command for command in cluster["setup_commands"])
    for start in (cluster["head_start_ray_commands"][-1], cluster["worker_start_ray_commands"][-1]):
        assert "RAY_AUTH_MODE=token ray start" in start


def test_checkpoints_go_to_the_object_storage_of_the_cloud(
    cluster: dict[str, Any], cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands that write the file of options are run, and the file is read as a job reads it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for command in cluster["head_setup_commands"]:
        subprocess.run(["bash", "-c", command], check=True)
    assert "RAYFLINK_CONF_DIR=~/rayflink-conf" in cluster["head_start_ray_commands"][-1]
    given = given_options({"RAYFLINK_CONF_DIR": str(tmp_path / "rayflink-conf")})
    directory = given.get_string("state.checkpoints.dir")
    assert directory is not None and directory.startswith(CLOUDS[cloud])
    assert not given.unknown_options()


def test_the_head_node_keeps_its_state_in_redis_where_one_is_named(cluster: dict[str, Any], tmp_path: Path) -> None:
    """The commands are run with a `ray` that writes down how it is called."""
    folder = tmp_path / "rayflink-venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "ray").write_text('#!/bin/sh\nenv | grep ^RAY_ | sort\nprintf "%s\\n" "$@"\n')
    (folder / "ray").chmod(0o755)
    (tmp_path / ".ray").mkdir()
    start, environment = cluster["head_start_ray_commands"][-1], {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    def said(command: str) -> str:
        command = command.replace("ulimit -n 65536;", "")
        return subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True).stdout

    assert "REDIS" not in said(start) and "--redis-password=\n" in said(start)
    (tmp_path / ".ray" / "redis_password").write_text("secret\n")
    with_redis = said(start.replace("REDIS=;", "REDIS=10.0.0.5:6379;"))
    assert "RAY_REDIS_ADDRESS=10.0.0.5:6379\nRAY_external_storage_namespace=rayflink\n" in with_redis
    assert "--redis-password=secret\n" in with_redis
    assert "RAY_gcs_rpc_server_reconnect_timeout_s=600" in said(cluster["worker_start_ray_commands"][-1])
