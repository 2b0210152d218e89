"""The examples of docs/object-stores.md run against a server of S3's protocol."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from .stores import Server

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[3] / "docs" / "object-stores.md"


def test_the_examples_of_the_page_run(s3: Server) -> None:
    found = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
        globs={"endpoint": s3.options["s3.endpoint"]},
    )  # fmt: skip
    assert found.attempted >= 12 and found.failed == 0
    assert s3.uploads() == []
