"""The services of deploy/systemd, by their commands, on machines with a Redis server; the head node is killed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.watching import eventually
from tests.deploy.cloud_files import ROOT
from tests.deploy.machines import Site, absent, address, install_wheel, machines
from tests.deploy.test_ray_up import PROGRAM

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.soak]

CLIENT, HEAD, WORKER = range(3)
SYSTEMD = ROOT / "deploy" / "systemd"
TOKEN = "token-of-the-dispatcher"
OPTIONS = f"""
high-availability.storageDir: /mnt/ha
rest.bind-address: 0.0.0.0
rest.token: {TOKEN}
"""
ASK = f"""
import urllib.request

url = "http://{address(HEAD)}:8081/jobs/overview"
request = urllib.request.Request(url, headers={{"Authorization": "Bearer {TOKEN}"}})
try:
    print(urllib.request.urlopen(request, timeout=5).read().decode())
except OSError as error:
    print(error)
"""
REMOTE = f"-D execution.target=remote -D rest.address={address(HEAD)} -D rest.token={TOKEN}"
CHECKPOINTS = "-D execution.checkpointing.dir=/mnt/checkpoints"
CLIENTS = "export PATH=~/rayflink-venv/bin:$PATH && "
LACKING = [*absent(), *(["redis-server"] if shutil.which("redis-server") is None else [])]


def service(name: str) -> str:
    """A shell's command that does what systemd does for a unit: its commands, again and again."""
    text = moved((SYSTEMD / f"rayflink-{name}.service").read_text().replace("\\\n", " "))
    commands = re.findall(r"(?m)^ExecStart(?:Pre)?=(.*)$", text)
    (environment,) = re.findall(r"(?m)^EnvironmentFile=(.*)$", text)
    prepare = f"set -a; . {environment}; set +a; mkdir -p ~/lib; cd ~/lib; ulimit -n 65536; "
    return prepare + f"while true; do {'; '.join(commands)}; sleep 3; done"


def moved(text: str) -> str:
    """The text with folders that machines have of their own."""
    folders = {"/opt/rayflink/bin": "/home/ray/rayflink-venv/bin", "/etc/rayflink": "/mnt/etc",
               "/var/lib/rayflink": "/home/ray/lib"}  # fmt: skip
    for ours, theirs in folders.items():
        text = text.replace(ours, theirs)
    return text


def write_options(folder: Path) -> None:
    """Fill in what docs/deploy.md says."""
    folder.mkdir()
    text = moved((SYSTEMD / "rayflink.env").read_text()).replace("#RAY_", "RAY_")
    redis = {"RAY_REDIS_ADDRESS": f"{address(CLIENT)}:6379", "REDIS_PASSWORD": "secret"}
    values = {"HEAD": address(HEAD), "SLOTS": "2", **redis}
    for key, value in values.items():
        text = re.sub(rf"(?m)^{key}=.*$", f"{key}={value}", text)
    (folder / "rayflink.env").write_text(text)
    (folder / "rayflink.yaml").write_text(OPTIONS)
    (folder / "auth_token").write_text("0123456789abcdef" * 4)


@pytest.mark.skipif(LACKING != [], reason=f"needs {', '.join(LACKING)}")
@pytest.mark.timeout(400)
def test_services_run_a_cluster_that_outlives_its_head(tmp_path: Path) -> None:
    with machines(tmp_path, ["client", "head", "worker"]) as site, ExitStack() as stack:
        shared = tmp_path / "shared"
        write_options(shared / "etc")
        (shared / "totals.py").write_text(PROGRAM)
        (shared / "ask.py").write_text(ASK)
        shutil.copy(ROOT / "deploy" / "docker" / "healthy", shared)

        def start(number: int, command: str, log: str) -> None:
            file = stack.enter_context(open(tmp_path / log, "wb"))
            process = subprocess.Popen(site.shell(number, command), stdout=file, stderr=subprocess.STDOUT)
            stack.callback(process.wait)
            stack.callback(process.kill)

        install_wheel(site, HEAD)
        install_wheel(site, WORKER)
        start(CLIENT, "redis-server --bind 0.0.0.0 --requirepass secret --appendonly yes --dir ~", "redis.log")
        start(HEAD, service("head"), "head.log")
        start(HEAD, service("dispatcher"), "dispatcher.log")
        start(WORKER, service("worker"), "worker.log")
        assert eventually(lambda: is_running(site), 90), (tmp_path / "dispatcher.log").read_text()
        site.run(HEAD, "python3 /mnt/healthy")
        site.run(CLIENT, CLIENTS + f"rayflink run -d -p 2 {CHECKPOINTS} {REMOTE} /mnt/totals.py")
        assert eventually(lambda: states(site) == ["RUNNING"] and newest_checkpoint(shared) > 1, 90)

        site.run(HEAD, "pkill -KILL '^(python|ray|gcs)'")  # of that machine: its processes are in a namespace
        assert eventually(lambda: not is_running(site), 30)
        before = newest_checkpoint(shared)
        assert eventually(lambda: is_running(site) and states(site) == ["RUNNING"], 120)
        assert eventually(lambda: newest_checkpoint(shared) > before + 1, 90)
        site.run(CLIENT, CLIENTS + f"rayflink cancel totals {REMOTE}")
        assert eventually(lambda: states(site) == ["CANCELED"], 60)


def is_running(site: Site) -> bool:
    """Whether the dispatcher answers."""
    return states(site) is not None


def states(site: Site) -> list[str] | None:
    """The states of all jobs; None: the dispatcher does not answer."""
    answer = site.run(CLIENT, "python3 /mnt/ask.py")
    return [job["state"] for job in json.loads(answer)["jobs"]] if answer.startswith("{") else None


def newest_checkpoint(shared: Path) -> int:
    """The number of the last complete checkpoint."""
    published = (shared / "checkpoints").glob("*/chk-*/_metadata")
    return max((int(path.parent.name.removeprefix("chk-")) for path in published), default=0)
