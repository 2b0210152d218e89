"""Multipart uploads of S3, by boto3: obstore completes an upload itself and gives no id of it away."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

from rayflink.state.storage.object_store_options import client_configuration

from .object_store import TOKEN, ObjectStore
from .store_errors import MissingObjectError, ObjectStoreError

TAIL_NUMBER = 10_000
"""Number of the part that a commit adds: S3's largest, which no attempt that still runs uploads, too."""


class S3Uploads:
    """Multipart uploads to a bucket.

    Args:
        store: the bucket.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store, self._bucket = store, store.root.partition("://")[2]
        self._client: Any = None
        self._lock = Lock()

    def begin(self, key: str, token: str) -> str:
        """Return the id of a new upload."""
        answer = self._call("create_multipart_upload", key, Metadata={TOKEN: token})
        return str(answer["UploadId"])

    def add(self, key: str, upload_id: str, number: int, data: bytes) -> str:
        """Upload a part, in the place of one of that number; return its ETag."""
        return str(self._call("upload_part", key, UploadId=upload_id, PartNumber=number, Body=data)["ETag"])

    def complete(self, key: str, upload_id: str, parts: Sequence[tuple[int, str]], tail: bytes, token: str) -> None:
        """Complete an upload, with the tail as its last part."""
        wanted = [{"PartNumber": number, "ETag": tag} for number, tag in parts]
        if tail:
            wanted.append({"PartNumber": TAIL_NUMBER, "ETag": self.add(key, upload_id, TAIL_NUMBER, tail)})
        self._call("complete_multipart_upload", key, UploadId=upload_id, MultipartUpload={"Parts": wanted})

    def abort(self, key: str, upload_id: str) -> None:
        """Abort an upload; one that is gone is no error."""
        try:
            self._call("abort_multipart_upload", key, UploadId=upload_id)
        except MissingObjectError:
            return

    def unfinished(self, prefix: str) -> Sequence[tuple[str, str]]:
        """Return key and id of the uploads that are neither complete nor aborted."""
        uploads: list[tuple[str, str]] = []
        marks: dict[str, str] = {}
        while True:
            page = self._request("list_multipart_uploads", prefix, Prefix=prefix, **marks)
            uploads += [(upload["Key"], upload["UploadId"]) for upload in page.get("Uploads", ())]
            if not page.get("IsTruncated"):
                return uploads
            marks = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}

    def _call(self, name: str, key: str, **arguments: object) -> Any:
        return self._request(name, key, Key=key, **arguments)

    def _request(self, name: str, key: str, **arguments: object) -> Any:
        action = getattr(self._opened(), name)
        return self._store.request(name.replace("_", " "), key, lambda: action(Bucket=self._bucket, **arguments))

    def _opened(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._open()
        return self._client

    def _open(self) -> Any:
        try:
            import boto3
            from botocore.config import Config
        except ImportError as error:
            remedy = "pip install 'rayflink[s3]' on every node"
            raise ObjectStoreError("write", self._store.root, f"found no package boto3 ({error})", remedy) from error
        known, _ = client_configuration(self._store.root, self._store.options)
        in_host = known.get("virtual_hosted_style_request")
        endpoint = self._store.options.get("s3.endpoint")
        config = Config(
            connect_timeout=5, read_timeout=60, retries={"max_attempts": 0}, max_pool_connections=16,
            s3={"addressing_style": "virtual" if in_host else "path"}, request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )  # fmt: skip
        if endpoint and "://" not in endpoint:
            endpoint = f"https://{endpoint}"
        return boto3.session.Session().client(
            "s3", config=config, endpoint_url=endpoint, region_name=known.get("region"),
            aws_access_key_id=known.get("access_key_id"), aws_secret_access_key=known.get("secret_access_key"),
            aws_session_token=known.get("session_token"),
        )  # fmt: skip


__all__ = ["S3Uploads"]
