"""The error of lake connectors, and the import of the library of a table format."""

from __future__ import annotations

import importlib
import re
from types import ModuleType

from rayflink.common.errors import ConnectorError

from ..file_systems.store_errors import known_refusal

_SECRET = re.compile(r"((?:secret|password|token|credential|access[-_.]?key)[\w.-]*['\"]?\s*[:=]\s*)[^\s,;}]+", re.I)
_AWS = re.compile(r"AWS Error ([A-Z_]+)")
"""The name of an error as Arrow writes it: NO_SUCH_BUCKET, where S3 has NoSuchBucket."""
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


def lake_error(subject: str, action: str, error: Exception, remedy: str) -> LakeError:
    """Return the error of a library as one of a lake, without secrets.

    Args:
        subject: what cannot be worked with, for the message.
        action: what cannot be done with it, such as "read".
        remedy: where the error is none with which an object store refuses requests.
    """
    reason = f"{type(error).__name__}: {without_secrets(error)}"
    known = known_refusal(OSError(_AWS.sub(_camel_case, str(error)))) if _is_of_store(error) else None
    if known is None:
        return LakeError(f"{subject} cannot be {action} ({reason})", remedy)
    return LakeError(f"{subject} cannot be {action}: {known[0]} ({reason})", known[1])


def _is_of_store(error: Exception) -> bool:
    """Return whether an object store may have refused a request, and not a catalog."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in ("deltalake", "_internal")


def _camel_case(match: re.Match[str]) -> str:
    return "".join(word.title() for word in match[1].split("_"))


__all__ = ["LakeError", "lake_error", "library", "without_secrets"]
