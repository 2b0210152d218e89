"""The error of lake connectors, and the import of the library of a table format."""

from __future__ import annotations

import importlib
import re
from types import ModuleType

from rayflink.common.errors import ConnectorError

_SECRET = re.compile(r"((?:secret|password|token|credential|access[-_.]?key)[\w.-]*['\"]?\s*[:=]\s*)[^\s,;}]+", re.I)
_IN_ADDRESS = re.compile(r"(://)[^/@\s]+@")


class LakeError(ConnectorError):
    """A table of a lake cannot be read or written."""


def library(name: str, extra: str) -> ModuleType:
    """Return a module that an extra of rayflink installs.

    Args:
        name: of the module.
        extra: of rayflink.

    Raises:
        LakeError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise LakeError(f"{name} is missing ({error})", f"pip install 'rayflink[{extra}]' on every node") from error


def without_secrets(message: object) -> str:
    """Return the first lines of a message of a library, without values of secret options and passwords in addresses.

    >>> without_secrets("cannot open s3://key:pass@host/x, secret_access_key=abc")
    'cannot open s3://***@host/x, secret_access_key=***'
    """
    shown = " ".join(str(message).split())[:500]
    return _IN_ADDRESS.sub(r"\1***@", _SECRET.sub(r"\1***", shown))


__all__ = ["LakeError", "library", "without_secrets"]
