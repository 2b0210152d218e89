"""Statements of Flink's SQL that are refused, each with what to do in its place."""

from __future__ import annotations

_FILES = "there are no JARs; use add_python_file for modules, set_python_requirements for packages"
_MODULES = "there is the module core alone; make functions known by create_temporary_system_function"
_EMPTY = "in batch mode INSERT OVERWRITE t SELECT * FROM t WHERE FALSE, where the connector takes it"
_OF_SHELL = "the SQL shell and the gateway have it"
REMEDIES: dict[str, str] = {
    "ADD JAR": _FILES,
    "REMOVE JAR": _FILES,
    "SHOW JARS": _FILES,
    "LOAD MODULE": _MODULES,
    "UNLOAD MODULE": _MODULES,
    "CALL": "there are no procedures; call a function in SELECT, or the catalog from Python",
    "ANALYZE TABLE": "write the statistics by alter_table_statistics of the catalog",
    "TRUNCATE TABLE": f"{_EMPTY}, or empty it in the system that stores it",
    "DELETE": "in batch mode INSERT OVERWRITE t SELECT * FROM t WHERE the rows stay, or delete in the system outside",
    "UPDATE": "insert the new rows: a table with a primary key replaces those of the key; or INSERT OVERWRITE",
    "SHOW JOBS": f"take `rayflink list`; {_OF_SHELL}",
    "STOP JOB": f"take `rayflink stop`, or get_job_client() of the result of INSERT; {_OF_SHELL}",
}
"""The words that a statement begins with, and the remedy."""


def refusal(first: str, second: str) -> tuple[str, str] | None:
    """Return what is wrong with a statement and the remedy; None: it is not one of these.

    Args:
        first: the word that it begins with, in capitals.
        second: the next word, in capitals.
    """
    for words in (first, f"{first} {second}"):
        if remedy := REMEDIES.get(words):
            return f"{words} is not supported", remedy
    return None


__all__ = ["REMEDIES", "refusal"]
