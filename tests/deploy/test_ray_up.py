"""A cluster by cluster.yaml and the commands of docs/deploy.md, on machines of Ray's provider `local`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.watching import eventually
from tests.deploy.cloud_files import chosen
from tests.deploy.machines import Site, absent, address, machines

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.soak]

CLIENT, HEAD, WORKER = range(3)
PROGRAM = """
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors import DataGeneratorSource

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(500)
numbers = env.from_source(DataGeneratorSource(records_per_second=100), None, "Numbers").uid("numbers")
numbers.key_by(lambda number: number % 10).sum().uid("totals").name("Totals").filter(lambda n: False).print()
env.execute("totals")
"""
IN_CLONE = "cd ~/clone && export PATH=~/rayflink-venv/bin:$PATH RAY_AUTH_MODE=token && "


def local_cluster() -> dict[str, Any]:
    """cluster.yaml with machines of this site in place of a cloud's, and a folder of theirs in place of its storage."""
    cluster: dict[str, Any] = yaml.safe_load(chosen("aws"))
    for key in ("available_node_types", "head_node_type"):
        del cluster[key]
    cluster["provider"] = {"type": "local", "head_ip": address(HEAD), "worker_ips": [address(WORKER)]}
    cluster["auth"] = {"ssh_user": "root", "ssh_private_key": "/mnt/key"}
    options = [command.replace("s3://YOUR-BUCKET/rayflink", "/mnt") for command in cluster["head_setup_commands"]]
    return {**cluster, "head_setup_commands": options, "min_workers": 0, "max_workers": 1, "idle_timeout_minutes": 0.1}


@pytest.mark.spec("S02", "asks", "idle")
@pytest.mark.skipif(absent() != [], reason=f"needs {', '.join(absent())}")
@pytest.mark.timeout(400)
def test_a_cluster_comes_up_takes_a_job_grows_shrinks_and_goes(tmp_path: Path) -> None:
    with machines(tmp_path, ["client", "head", "worker"]) as site:
        slots = 1 + int(site.run(HEAD, "nproc"))
        site.run(CLIENT, "mkdir -p ~/clone && cp -r /mnt/dist ~/clone")
        clone = tmp_path / "client" / "ray" / "clone"
        (clone / "cluster.yaml").write_text(yaml.safe_dump(local_cluster()))
        (clone / "program").mkdir()
        (clone / "program" / "totals.py").write_text(PROGRAM)

        site.run(CLIENT, IN_CLONE + "ray get-auth-token --generate")
        said = site.run(CLIENT, IN_CLONE + "RAY_UP_enable_autoscaler_v2=0 ray up --yes cluster.yaml", 300)
        assert "up-to-date" in said, said
        assert nodes(site) == [1, 0]

        forward = subprocess.Popen(site.shell(CLIENT, IN_CLONE + "ray dashboard cluster.yaml"))
        try:
            submit = "ray job submit --address http://localhost:8265 --working-dir program --no-wait -- "
            submission = IN_CLONE + submit + f"rayflink run -d --wait -p {slots} totals.py"
            look = "(exec 3<>/dev/tcp/localhost/8265) 2>/dev/null && echo open || true"
            assert eventually(lambda: "open" in site.run(CLIENT, look), 30)
            site.run(CLIENT, submission)
        finally:
            forward.kill()
            forward.wait()
        published = tmp_path / "shared" / "checkpoints"
        is_running = eventually(lambda: list(published.glob("*/chk-*/_metadata")), 150)
        assert is_running, site.run(HEAD, "tail -n 60 /tmp/ray/session_latest/logs/monitor.*")
        assert nodes(site) == [1, 1]  # the job has more slots than the head node
        assert "RUNNING" in site.run(CLIENT, IN_CLONE + "ray exec cluster.yaml 'rayflink list'")

        site.run(CLIENT, IN_CLONE + "ray exec cluster.yaml 'rayflink cancel totals'")
        assert eventually(lambda: nodes(site) == [1, 0], 90)
        site.run(CLIENT, IN_CLONE + "ray down --yes cluster.yaml")
        assert nodes(site) == [0, 0]


def nodes(site: Site) -> list[int]:
    """The number of raylets on the head's machine and on the worker's."""
    return [int(site.run(number, "pgrep -c raylet || true")) for number in (HEAD, WORKER)]
