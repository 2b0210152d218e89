"""The examples of docs/http.md run and give what they show."""

from __future__ import annotations

import doctest
from pathlib import Path

from .service import http_service

PAGE = Path(__file__).parents[3] / "docs" / "http.md"


def test_the_examples_of_the_page_run() -> None:
    with http_service() as service:
        names = {"url": service.url, "service": service}
        options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        found = doctest.testfile(str(PAGE), module_relative=False, optionflags=options, extraglobs=names)
    assert found.attempted >= 12
    assert found.failed == 0
