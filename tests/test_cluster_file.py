"""cluster.yaml, as it is and with each of its commented variants in place of AWS, is what `ray up` takes."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from rayflink.common.options.option_sources import given_options

ROOT = Path(__file__).parent.parent
CLOUDS = {"aws": "s3://", "gcp": "gs://", "azure": "abfs://"}
PART = r"(?ms)^# --- {cloud}: begin\.[^\n]*\n(.*?)^# --- {cloud}: end\.\n"


def part(text: str, cloud: str) -> str:
    found = re.search(PART.format(cloud=cloud), text)
    assert found is not None, f"cluster.yaml has no part for {cloud}"
    return found[1]


def chosen(cloud: str) -> str:
    """The file as a user makes it for a cloud: the AWS part commented, the lines of the other one freed of "# "."""
    text = (ROOT / "cluster.yaml").read_text(encoding="utf-8")
    if cloud != "aws":
        ours, theirs = part(text, "aws"), part(text, cloud)
        assert all(line.startswith("#") for line in theirs.splitlines())
        text = text.replace(ours, "".join(f"# {line}\n" for line in ours.splitlines()))
        text = text.replace(theirs, "".join(f"{line[2:]}\n" for line in theirs.splitlines()))
    return text


@pytest.fixture(params=CLOUDS)
def cloud(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cluster(cloud: str) -> dict[str, Any]:
    return dict(yaml.safe_load(chosen(cloud)))


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
    assert any("pip install" in command and "[cluster,s3]" in command for command in cluster["setup_commands"])
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
