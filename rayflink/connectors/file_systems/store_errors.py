"""Errors of object stores, with the cause that the store names and a remedy."""

from __future__ import annotations

import re

from rayflink.common.errors import RayflinkError


class ObjectStoreError(RayflinkError):
    """An object store refuses a request, in a way that trying again does not change.

    Args:
        action: what was tried, as in "read".
        address: of the object, or of the store.
        cause: what the store said.
        remedy: what to do.
    """

    def __init__(self, action: str, address: str, cause: str, remedy: str) -> None:
        super().__init__(action, address, cause, remedy)
        self.action, self.address, self.cause, self.remedy = action, address, cause, remedy

    def __str__(self) -> str:
        return f"cannot {self.action} {self.address}: {self.cause}; {self.remedy}"


class StoreConnectionError(ObjectStoreError):
    """An object store did not answer, or was too busy, as often as it was tried: an outage, which may pass."""


class MissingObjectError(ObjectStoreError):
    """An object is not there."""


class ChangedObjectError(ObjectStoreError):
    """An object has other content than when it was listed, or when its position was saved."""


_ENVIRONMENT = "s3.access-key and s3.secret-key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_OTHERS = "for gs:// fs.gs.auth.service.account.json.keyfile, for az:// fs.azure.account.key"
_CREDENTIALS = f"set {_ENVIRONMENT} ({_OTHERS}), the same on every node, or give the machines a role"
_CLOCK = "set the clock of this machine by NTP: the store refuses requests whose time differs by minutes"
_REGION = "set s3.region to the region of the bucket, and s3.endpoint to a server of that region"
_RIGHTS = "permit the credentials of the job to list, read, write and delete there, or use others"
_SPACE = "free space there or raise the quota of the bucket, then the job can go on"
_BUCKET = "correct the bucket's name, or make it; a job makes no buckets"
_WAIT = "look at the store and the network; the job goes on by its restart strategy when the store answers again"

_KNOWN: tuple[tuple[str, str, str], ...] = (
    ("169\\.254\\.169\\.254|metadata\\.google|credential provider|CredentialsError|NoCredentials|Unable to locate cred",
     "no credentials were found", _CREDENTIALS),
    ("RequestTimeTooSkewed|RequestExpired", "the clocks of this machine and of the store differ", _CLOCK),
    ("InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|ExpiredToken|AuthenticationFailed|InvalidAuthentication"
     "|UnauthenticatedError|401 Unauthorized|InvalidSecurity",
     "the store does not accept the credentials", _CREDENTIALS),
    ("PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraint|301 Moved|307 Temporary"
     "|redirect without LOCATION|MissingRegion",
     "the bucket is in another region", _REGION),
    ("NoSuchBucket|ContainerNotFound|specified bucket does not exist|InvalidBucketName|bucket was not found",
     "there is no such bucket", _BUCKET),
    ("QuotaExceeded|StorageFull|507 Insufficient|InsufficientStorage|AccountLimit|ServiceQuota",
     "the bucket is full", _SPACE),
    ("AccessDenied|403 Forbidden|PermissionDenied|AllAccessDisabled|AuthorizationFailure|AuthorizationPermission",
     "the store forbids it", _RIGHTS),
)  # fmt: skip
_GONE = ("NoSuchKey", "NoSuchUpload", "BlobNotFound", "InvalidBlockList", "404")
_PASSING = re.compile(
    r"SlowDown|InternalError|RequestTimeout|ServerBusy|OperationTimedOut|Throttl|TooManyRequests|408 |429 |"
    r"50[0-9] [A-Z]|\(50[0-9]\)|HTTP error|error sending request|[Tt]imed? ?out|[Cc]onnection|IncompleteRead|EOF"
    r"|decoding response|Broken pipe|BadDigest|EndpointConnection|JoinError"
)


def known_refusal(error: BaseException) -> tuple[str, str] | None:
    """Return problem and remedy of an error with which a store refuses requests; None: it is of another kind."""
    whole, name = str(error), type(error).__name__
    for pattern, problem, remedy in _KNOWN:
        if re.search(pattern, whole) or re.search(pattern, name):
            return problem, remedy
    return None


def explained(error: BaseException, action: str, address: str, tries: int = 1) -> ObjectStoreError:
    """Return what a client raised as an error that says the cause and the remedy.

    Args:
        tries: how often the request was made.
    """
    whole = str(error)
    shown = whole.partition("\n\nDebug source")[0]
    code = re.search(r"<Code>(\w+)</Code>|ErrorCode:(\w+)|\((\w+)\) when calling", shown)
    name = next((part for part in code.groups() if part), "") if code else ""
    cause = shown.partition("<?xml")[0].partition("\n")[0].rstrip(" :")
    cause = f"{cause} ({name})" if name and name not in cause else cause
    known = known_refusal(error)
    if known is not None:
        problem, remedy = known
        return ObjectStoreError(action, address, f"{problem}: {cause}", remedy)
    if isinstance(error, FileNotFoundError) or name in _GONE:
        remedy = "leave objects in place until the job has read them"
        return MissingObjectError(action, address, f"there is no such object ({cause})", remedy)
    if "Precondition" in type(error).__name__ or "412 " in whole:
        remedy = "leave objects as they are until the job has read them, and put new content into new objects"
        return ChangedObjectError(action, address, "it was written anew since it was listed", remedy)
    if _PASSING.search(whole) or _PASSING.search(type(error).__name__):
        return StoreConnectionError(action, address, f"tried {tries} times, at last: {cause}", _WAIT)
    return ObjectStoreError(action, address, cause, "correct the address, or the options of the store")


__all__ = ["ChangedObjectError", "MissingObjectError", "ObjectStoreError", "StoreConnectionError", "explained",
           "known_refusal"]  # fmt: skip
