"""Machines on this one, with an SSH server each, as `ray up` finds them in a cloud or a cellar.

They are namespaces of Linux, which root alone may make: with an address, processes and folders of their own, so that
`ray stop` there ends nothing elsewhere. They reach no network, so the packages that rayflink needs are there: pip has
installed them once, and each machine writes above them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.servers.bound_process import start_bound
from tests.cluster.watching import eventually
from tests.deploy.cloud_files import ROOT
from tests.deploy.dockerfile import stages

NEEDED = {"unshare": "util-linux", "ip": "iproute2", "rsync": "rsync", "ssh": "openssh-client",
          "/usr/sbin/sshd": "openssh-server"}  # fmt: skip
"""Programs and Debian's packages of them."""
HERE = Path(__file__).parent
PROFILE = """
export PATH={python}:$PATH PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_COMPILE=1
export RAY_USAGE_STATS_ENABLED=0 RAY_worker_niceness=0
. ~/.bashrc
"""
EXTRAS = "[cluster,s3,gateway]"
MAKE = """
mount -t tmpfs tmpfs /home
mkdir -p /home/ray/rayflink-venv
mount --bind "$1" /home/ray/rayflink-venv
"$2/bin/python3" -m venv /home/ray/rayflink-venv
/home/ray/rayflink-venv/bin/pip install --quiet --no-compile --disable-pip-version-check "$3"
/home/ray/rayflink-venv/bin/pip uninstall --quiet --yes rayflink
"""
"""Makes an environment at the place that it has on machines: its folder, a Python, a requirement."""
SSHD = """
HostKey /mnt/host_key
AuthorizedKeysFile /mnt/key.pub
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
"""


def absent() -> list[str]:
    """Packages that are missing here; "root" where the user may not make machines."""
    packages = [package for program, package in NEEDED.items() if shutil.which(program) is None]
    return packages if os.geteuid() == 0 else [*packages, "root"]


@dataclass
class Site:
    """Running machines, by number: the first has the address 10.77.0.10."""

    folder: Path
    process: subprocess.Popen[bytes]

    def run(self, number: int, command: str, within_s: float = 120) -> str:
        """Run a command in a login shell of a machine, and return what it prints."""
        ended = subprocess.run(self.shell(number, command), capture_output=True, text=True, timeout=within_s)
        assert ended.returncode == 0, f"{command}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout + ended.stderr

    def shell(self, number: int, command: str) -> list[str]:
        """The command that runs another one in a login shell of a machine."""
        quoted = "'" + command.replace("'", "'\\''") + "'"
        options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
                   "-o", "ConnectTimeout=5"]
        assert os.readlink(f"/proc/{self.process.pid}/ns/net") != os.readlink("/proc/self/ns/net")
        inside = ["nsenter", "--target", str(self.process.pid), "--net"]
        key = str(self.folder / "shared" / "key")
        return [*inside, "ssh", "-i", key, *options, f"root@{address(number)}", f"bash -lc {quoted}"]

    def log(self) -> str:
        """What the machines print."""
        return (self.folder / "site.log").read_text(errors="replace")

    def answers(self, number: int) -> bool:
        """Whether a machine can be reached."""
        return subprocess.run(self.shell(number, "true"), capture_output=True).returncode == 0


def address(number: int) -> str:
    """Of a machine."""
    return f"10.77.0.{10 + number}"


@contextmanager
def machines(folder: Path, names: list[str]) -> Iterator[Site]:
    """Machines of these names, each with /mnt/dist, in which the wheel is; the first has it in ~/rayflink-venv.

    Args:
        folder: empty; holds their homes.
    """
    shared = folder / "shared"
    shared.mkdir()
    profile = PROFILE.format(python=Path(sys.base_prefix) / "bin")
    for name in names:
        (folder / name / "ray" / "rayflink-venv").mkdir(parents=True)
        (folder / f"{name}-upper").mkdir()
        (folder / f"{name}-work").mkdir()
        (folder / name / "ray" / ".profile").write_text(profile)
        (folder / name / "ray" / ".bashrc").touch()
    for key in ("key", "host_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", shared / key], check=True)
    (shared / "passwd").write_text(re.sub(r"(?m)^(root:.*):[^:]*:[^:]*$", r"\1:/home/ray:/bin/bash", passwords()))
    (shared / "sshd_config").write_text(SSHD)
    wheel = build_wheel(folder / "source", shared / "dist")
    ours = ["--net", "--pid", "--fork", "--mount", "--mount-proc", "--kill-child"]
    with open(folder / "site.log", "wb") as log:
        command = ["unshare", *ours, "bash", HERE / "site.sh", folder, packages(wheel), *names]
        process = start_bound(command, stdout=log, stderr=subprocess.STDOUT)
    site = Site(folder, process)
    try:
        is_ready = eventually((folder / "ready").exists, 30)  # before that, nothing is asked: addresses are of the site
        assert is_ready and eventually(lambda: all(map(site.answers, range(len(names)))), 30), site.log()
        install_wheel(site, 0)
        yield site
    finally:
        process.kill()
        process.wait()


def passwords() -> str:
    """The file of users, which has no passwords."""
    return Path("/etc/passwd").read_text(encoding="utf-8")


def build_wheel(source: Path, into: Path) -> Path:
    """Build the wheel, as `make wheel` does, from a copy of what it is made of."""
    source.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for _, paths, _ in stages()[0].copies():
        for path in paths:
            if (ROOT / path).is_dir():
                shutil.copytree(ROOT / path, source / path, symlinks=True, ignore=ignored)
            else:
                shutil.copy(ROOT / path, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", into, source]
    subprocess.run(command, check=True)
    (wheel,) = into.glob("*.whl")
    return wheel


def install_wheel(site: Site, number: int) -> None:
    """Install the wheel as cluster.yaml does."""
    site.run(number, "python3 -m venv ~/rayflink-venv")
    site.run(number, f'~/rayflink-venv/bin/pip install --quiet "$(ls /mnt/dist/*.whl){EXTRAS}"')


def packages(wheel: Path) -> Path:
    """An environment with all that the wheel needs, and without it; it is made once and kept in ~/.cache/rayflink."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.findall(r"(?ms)^(?:dependencies|cluster|s3|gateway) = \[.*?\]$", project)
    name = hashlib.sha256(f"{sys.version} {needed}".encode()).hexdigest()[:12]
    folder = Path.home() / ".cache" / "rayflink" / f"machine-{name}"
    environment = folder / "environment"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        environment.mkdir(parents=True)
        command = ["unshare", "--mount", "bash", "-ec", MAKE, "make", environment, sys.base_prefix, f"{wheel}{EXTRAS}"]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": ""}, check=True)
        (folder / "ready").touch()
    return environment
