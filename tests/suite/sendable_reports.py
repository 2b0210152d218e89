"""Reports of tests that can be sent between processes, whatever text a failure shows."""

from __future__ import annotations

from typing import Any

import pytest


def sendable(value: Any) -> Any:
    """The value with each half of a surrogate pair, which UTF-8 does not have, as its escape.

    >>> sendable({"odd \\ud800": ["\\ud800", ("file", 1)]})
    {'odd \\\\ud800': ['\\\\ud800', ('file', 1)]}
    """
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {sendable(key): sendable(each) for key, each in value.items()}
        case list():
            return [sendable(each) for each in value]
        case tuple():
            return tuple(sendable(each) for each in value)
        case _:
            return value


class SendableReports:
    """A plugin for the processes of a divided run, which end the whole run where a report cannot be sent."""

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Any:
        return sendable((yield))
