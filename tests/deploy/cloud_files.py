"""The files of deploy/clouds/, each made of cluster.yaml, where the parts of the other clouds are comments.

`RAYFLINK_WRITE_GOLDEN=1 python -m pytest -n0 tests/deploy/test_cluster_file.py -k ready` writes them anew.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CLOUDS = {"aws": "s3://", "gcp": "gs://", "azure": "abfs://"}
"""With the scheme of the storage for checkpoints."""
_PART = r"(?ms)^# --- {cloud}: begin\.[^\n]*\n(.*?)^# --- {cloud}: end\.\n"
_CHOICE = re.compile(r"(?ms)^# It is written for AWS\..*?(?=What is in capitals)")


def cluster_file() -> str:
    """The text of cluster.yaml."""
    return (ROOT / "cluster.yaml").read_text(encoding="utf-8")


def part(text: str, cloud: str) -> str:
    """The lines that are of one cloud alone."""
    match = re.search(_PART.format(cloud=cloud), text)
    assert match is not None, f"cluster.yaml has no part for {cloud}"
    return match[1]


def chosen(cloud: str) -> str:
    """The file as a user makes it for a cloud: the AWS part commented, the lines of the other one freed of "# "."""
    text = cluster_file()
    if cloud != "aws":
        ours, theirs = part(text, "aws"), part(text, cloud)
        assert all(line.startswith("#") for line in theirs.splitlines())
        text = text.replace(ours, "".join(f"# {line}\n" for line in ours.splitlines()))
        text = text.replace(theirs, _freed(theirs))
    return text


def ready(cloud: str) -> str:
    """The file of a cloud, without the parts of the others."""
    text = cluster_file()
    for name in CLOUDS:
        lines = part(text, name)
        lines = lines if name == "aws" else _freed(lines)
        text = re.sub(_PART.format(cloud=name) + r"\n?", lambda _, of=name, own=lines: f"{own}\n" * (of == cloud), text)
    text = text.replace(" cluster.yaml", f" deploy/clouds/{cloud}.yaml")
    return _CHOICE.sub("# Made of cluster.yaml by its tests. ", text)


def _freed(lines: str) -> str:
    return "".join(f"{line[2:]}\n" for line in lines.splitlines())
