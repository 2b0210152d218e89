"""Says what Kubernetes and KubeRay's operator would refuse in a manifest, unknown fields included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

VERSION = "1.31"
"""Of Kubernetes."""
CRDS = json.loads(Path(__file__).with_name("kuberay_crds.json").read_text(encoding="utf-8"))


def manifests(text: str) -> list[dict[str, Any]]:
    """The objects of a file."""
    return [each for each in yaml.safe_load_all(text) if each]


def refusals(manifest: dict[str, Any]) -> list[str]:
    """What is wrong with an object, with its place."""
    if manifest["apiVersion"] == "ray.io/v1":
        schema = {"$defs": strict(CRDS["$defs"]), **strict(CRDS["kinds"][manifest["kind"]])}
        errors = jsonschema.Draft202012Validator(schema).iter_errors(manifest)
        return [f"{error.json_path}: {error.message[:200]}" for error in errors]
    try:
        kubernetes_validate.validate(manifest, VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{'.'.join(map(str, error.path))}: {error.message[:200]}"]
    return []


def strict(schema: Any) -> Any:
    """The schema with unknown fields refused, as the API server does where a client asks for strict validation."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: strict(each) for key, each in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        if "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            copy["additionalProperties"] = False
    return copy


def pod_templates(manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The specifications of all pods of an object."""
    spec = manifest.get("spec", {})
    cluster = spec.get("rayClusterSpec", spec)
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]] if "headGroupSpec" in cluster else []
    yield from (group["template"]["spec"] for group in groups)
    for name in ("template", "submitterPodTemplate"):
        if name in spec:
            yield spec[name]["spec"]
