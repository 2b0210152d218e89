"""Readers of arguments of the command line, each of which refuses what it cannot use with argparse's error."""

from __future__ import annotations

import argparse

EXPORT_FORMATS = ("parquet", "csv", "json")
"""Formats of the files that `rayflink state export` writes."""


def at_least_one(text: str) -> int:
    """Read a whole number of at least 1.

    Raises: argparse.ArgumentTypeError: it is no such number.
    """
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, wanted a whole number of at least 1")
    return int(text)


def wanted_parallelism(text: str) -> tuple[str, int]:
    """Read an argument of the form OPERATOR=N.

    Raises:
        ArgumentTypeError: it is not of that form.
    """
    operator, separator, number = text.rpartition("=")
    if not separator or not operator or not number.isdigit() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, wanted OPERATOR=N with N of at least 1")
    return operator, int(number)


def seconds(text: str) -> float:
    """Read the argument of `--watch`.

    Raises: argparse.ArgumentTypeError: it is no number of at least 0.1.
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"found {text!r}, wanted seconds, at least 0.1")
    return value


__all__ = ["EXPORT_FORMATS", "at_least_one", "seconds", "wanted_parallelism"]
