"""The units of deploy/systemd, as systemd reads them, and the file of Compose, as its specification has it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.deploy.cloud_files import ROOT

UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
COMPOSE = ROOT / "deploy" / "compose.yaml"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("ray", "rayflink"):
        (commands / name).symlink_to("/bin/true")
    for unit in UNITS:
        (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/rayflink/bin", str(commands)))

    def said(*units: Path) -> str:
        command = ["systemd-analyze", "verify", "--man=no", *map(str, units)]
        ended = subprocess.run(command, capture_output=True, text=True)
        return "\n".join(line for line in ended.stderr.splitlines() if "rayflink" in line)

    assert said(*(tmp_path / unit.name for unit in UNITS)) == ""
    wrong = tmp_path / "rayflink-wrong.service"
    wrong.write_text(UNITS[0].read_text().replace("Restart=always", "Restarts=always"))
    assert "Restarts" in said(wrong)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: str(unit.stem))
def test_a_unit_starts_again_and_has_no_rights(unit: Path) -> None:
    settings = dict(line.split("=", 1) for line in unit.read_text().splitlines() if re.match(r"\w+=", line))
    assert (settings["User"], settings["Restart"], settings["NoNewPrivileges"]) == ("rayflink", "always", "yes")
    assert settings.get("SuccessExitStatus") == ("1" if "--block" in settings["ExecStart"] else None)
    assert settings["EnvironmentFile"] == "/etc/rayflink/rayflink.env"
    variables = (unit.parent / "rayflink.env").read_text()
    for name in re.findall(r"\$\{?(\w+)", unit.read_text()):
        assert re.search(rf"^{name}=", variables, re.M), name


@pytest.mark.slow
def test_the_file_of_compose_fits_the_specification() -> None:
    schema = json.loads(Path(__file__).with_name("compose_spec.json").read_text())
    document = yaml.safe_load(COMPOSE.read_text())
    jsonschema.validate(document, schema, jsonschema.Draft7Validator)
    with pytest.raises(jsonschema.ValidationError):
        wrong = {**document, "services": {"head": {"imagee": "rayflink"}}}
        jsonschema.validate(wrong, schema, jsonschema.Draft7Validator)


def test_services_of_compose_wait_for_each_other_and_need_tokens() -> None:
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services)
        if name not in ("redis", "owner"):
            assert service["environment"]["RAY_AUTH_MODE"] == "token"
            assert service["cap_drop"] == ["ALL"] and service["restart"] == "unless-stopped"
            assert not {"ipc", "pid", "network_mode"} & set(service)  # Docker gives such a one up when the other dies
    assert services["head"]["ports"] == ["127.0.0.1:8265:8265"]
    assert services["dispatcher"]["ports"] == ["127.0.0.1:8081:8081"]  # no other way in
    assert "rest.token=${REST_TOKEN:?}" in services["dispatcher"]["environment"]["RAYFLINK_OPTIONS"]
    assert "redis-server" in services["redis"]["command"] and "RAY_REDIS_ADDRESS" in services["head"]["environment"]
