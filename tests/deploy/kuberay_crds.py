"""Writes kuberay_crds.json: what KubeRay's operator takes as a RayCluster and a RayJob, without descriptions.

    python tests/deploy/kuberay_crds.py CLONE TAG

CLONE is a clone of ray-project/kuberay, which is under the Apache License 2.0, as its copyright holders say there; the
schemas are those of its custom resource definitions, version v1. Objects that occur more than once are definitions.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("kuberay_crds.json")
KINDS = {"RayCluster": "rayclusters", "RayJob": "rayjobs"}


def crd_schema(clone: str, tag: str, plural: str) -> Any:
    """The schema of version v1 of a custom resource."""
    path = f"{tag}:helm-chart/kuberay-operator/crds/ray.io_{plural}.yaml"
    text = subprocess.run(["git", "-C", clone, "show", path], capture_output=True, check=True).stdout
    versions = yaml.load(text, yaml.CSafeLoader)["spec"]["versions"]
    (schema,) = [version["schema"]["openAPIV3Schema"] for version in versions if version["name"] == "v1"]
    return without_descriptions(schema)


def without_descriptions(node: Any) -> Any:
    """A schema without the descriptions for people."""
    if isinstance(node, dict):
        return {key: without_descriptions(each) for key, each in node.items() if not is_text(key, each)}
    return [without_descriptions(each) for each in node] if isinstance(node, list) else node


def is_text(key: str, node: Any) -> bool:
    """Whether this is a description, and no property of that name."""
    return key == "description" and isinstance(node, str)


class Definitions:
    """The objects that occur more than once, each written once."""

    def __init__(self, schemas: Any) -> None:
        self._counts: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self.written: dict[str, Any] = {}
        self._count(schemas)

    def replaced(self, node: Any, is_whole: bool = False) -> Any:
        """The schema with references in place of such objects."""
        if isinstance(node, list):
            return [self.replaced(each) for each in node]
        if not isinstance(node, dict):
            return node
        text = json.dumps(node, sort_keys=True)
        if is_whole or not is_object(node) or self._counts[text] == 1:
            return {key: self.replaced(each) for key, each in node.items()}
        if text not in self._names:
            self._names[text] = f"object{len(self._names)}"
            self.written[self._names[text]] = self.replaced(node, True)
        return {"$ref": f"#/$defs/{self._names[text]}"}

    def _count(self, node: Any) -> None:
        if isinstance(node, dict):
            self._counts[json.dumps(node, sort_keys=True)] += is_object(node)
        for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            self._count(each)


def is_object(node: dict[str, Any]) -> bool:
    """Whether it is the schema of an object, and no map of properties."""
    return node.get("type") == "object" and isinstance(node.get("properties"), dict)


def main(clone: str, tag: str) -> None:
    """Write the file."""
    schemas = {kind: crd_schema(clone, tag, plural) for kind, plural in KINDS.items()}
    definitions = Definitions(schemas)
    kinds = definitions.replaced(schemas)
    lines = [f'"source": "ray-project/kuberay {tag}, Apache License 2.0"']
    for name, each in {"$defs": definitions.written, "kinds": kinds}.items():
        inner = [f"{json.dumps(key)}: {json.dumps(schema, sort_keys=True)}" for key, schema in sorted(each.items())]
        lines.append(f'"{name}": {{\n' + ",\n".join(inner) + "\n}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
