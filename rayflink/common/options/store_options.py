"""The options that lead to object stores."""

from __future__ import annotations

from collections.abc import Mapping

from . import registry as options

_OF_STORES = (
    options.S3_ENDPOINT,
    options.S3_ACCESS_KEY,
    options.S3_SECRET_KEY,
    options.S3_TOKEN,
    options.S3_PATH_STYLE,
    options.S3_REGION,
    options.GS_KEY_FILE,
    options.GS_ENDPOINT,
    options.AZURE_ACCOUNT,
    options.AZURE_KEY,
    options.AZURE_ENDPOINT,
)


def storage_options(config: Mapping[str, object]) -> dict[str, str]:
    """Return the options of a job that configure access to object stores, as strings.

    >>> storage_options({"s3.region": "us-east-1", "parallelism.default": 2})
    {'s3.region': 'us-east-1'}
    """
    return {option.key: str(config[option.key]) for option in _OF_STORES if option.key in config}


__all__ = ["storage_options"]
