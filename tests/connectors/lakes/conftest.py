"""One S3 server for all tests of lakes of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .s3_process import s3_in_another_process


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    """Options that lead to an S3 server with a bucket; tests use folders of their own."""
    with s3_in_another_process() as options:
        yield options
