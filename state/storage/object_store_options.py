"""The configuration of a client of object stores, from Flink's options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

S3_SCHEMES = ("s3", "s3a")
GOOGLE_SCHEMES = ("gs",)
AZURE_SCHEMES = ("az", "adl", "azure", "abfs", "abfss")
SCHEMES = (*S3_SCHEMES, *GOOGLE_SCHEMES, *AZURE_SCHEMES)
_S3_OPTIONS = {
    "s3.endpoint": "endpoint",
    "s3.access-key": "access_key_id",
    "s3.secret-key": "secret_access_key",
    "s3.session-token": "session_token",
    "s3.endpoint.region": "region",
    "s3.region": "region",
}
_GOOGLE_OPTIONS = {
    "fs.gs.auth.service.account.json.keyfile": "service_account",
    "fs.gs.storage.root.url": "base_url",
}
_AZURE_OPTIONS = {
    "fs.azure.account.name": "account_name",
    "fs.azure.account.key": "account_key",
    "fs.azure.endpoint": "endpoint",
}
_EMPTY = ("client_email", "private_key", "private_key_id")
_PATH_STYLE = "s3.path.style.access"
_CLIENT = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(seconds=60)}


def client_configuration(url: str, options: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the configuration of obstore's client: the store, and how to connect to it.

    Args:
        url: of the store, such as ``s3://bucket/folder``.
        options: Flink's options by name, as strings; others are left alone.
    """
    scheme, _, rest = url.partition("://")
    client: dict[str, Any] = dict(_CLIENT)
    if scheme in S3_SCHEMES:
        client["allow_http"] = True  # where an address says so
        return _s3(rest.partition("/")[0], options), client
    known = _GOOGLE_OPTIONS if scheme in GOOGLE_SCHEMES else _AZURE_OPTIONS
    config: dict[str, Any] = {name: options[option] for option, name in known.items() if options.get(option)}
    client["allow_http"] = any(str(config.get(name, "")).startswith("http://") for name in ("base_url", "endpoint"))
    if client["allow_http"] and "base_url" in config and "service_account" not in config:
        account = {"gcs_base_url": config["base_url"], "disable_oauth": True}  # an emulator, which knows no accounts
        config["service_account_key"] = json.dumps({**account, **dict.fromkeys(_EMPTY, "")})
    return config, client


def _s3(bucket: str, options: Mapping[str, str]) -> dict[str, Any]:
    config: dict[str, Any] = {name: options[option] for option, name in _S3_OPTIONS.items() if options.get(option)}
    in_host = options.get(_PATH_STYLE, "true").lower() == "false"
    config["virtual_hosted_style_request"] = in_host
    if endpoint := config.get("endpoint", ""):
        protocol, separator, host = endpoint.rpartition("://")
        protocol = protocol if separator else "https"
        config["endpoint"] = f"{protocol}://{bucket}.{host}" if in_host else f"{protocol}://{host}"
        config.setdefault("region", "us-east-1")
    return config


__all__ = ["AZURE_SCHEMES", "GOOGLE_SCHEMES", "S3_SCHEMES", "SCHEMES", "client_configuration"]
