"""Options of tables as DDL before Flink 1.11 has them: `connector.type` in the place of `connector`."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import SqlError

_TYPE = "connector.type"
_PATH = "connector.path"
_FORMAT = "format.type"
_WITHOUT_EFFECT = {"connector.property-version": "1", "format.property-version": "1", "update-mode": "append",
                   "format.line-delimiter": "\n", "format.ignore-first-line": "false",
                   "format.derive-schema": "true"}  # fmt: skip
"""Options that say what holds here in any case, with the value that they may have."""
_OF_CSV = {
    "format.field-delimiter": "csv.field-delimiter", "format.quote-character": "csv.quote-character",
    "format.ignore-parse-errors": "csv.ignore-parse-errors",
}  # fmt: skip
_COMMENTS = "format.comment-prefix"
_EMPTY_IS_NULL = "format.empty-column-as-null"


def current_options(options: Mapping[str, str], table: str) -> Mapping[str, str]:
    """Return the options under their names of today; the same where they have those already.

    Flink has kept the older ones for CSV files alone. Without `format.quote-character` its lines have no quotes, and
    values behind those of the columns are passed over.

    >>> older = {"connector.type": "filesystem", "connector.path": "/data", "format.type": "csv"}
    >>> list(current_options(older, "t"))
    ['connector', 'path', 'format', 'csv.ignore-surplus-values', 'csv.disable-quote-character']

    Args:
        table: its name, for errors.

    Raises:
        SqlError: they say another connector or format, or something that files do not have.
    """
    if _TYPE not in options or "connector" in options:
        return options
    _check(options, _TYPE, "filesystem", table)
    _check(options, _FORMAT, "csv", table)
    _check(options, _COMMENTS, "#", table)
    result = {"connector": "filesystem", "path": options.get(_PATH, ""), "format": "csv"}
    result["csv.ignore-surplus-values"] = "true"
    if "format.quote-character" not in options:
        result["csv.disable-quote-character"] = "true"
    if _COMMENTS in options:
        result["csv.allow-comments"] = "true"
    if options.get(_EMPTY_IS_NULL, "false").lower() == "true":
        result["csv.null-literal"] = ""
    known = {_TYPE, _PATH, _FORMAT, _COMMENTS, _EMPTY_IS_NULL, *_OF_CSV, *_WITHOUT_EFFECT}
    for key, value in options.items():
        if key not in known:
            remedy = "write the options of today: 'connector' = 'filesystem', 'path' = ..., 'format' = 'csv'"
            raise SqlError(f"table {table} has the option {key!r} beside {_TYPE!r}, which is unknown", remedy)
        if key in _WITHOUT_EFFECT:
            _check(options, key, _WITHOUT_EFFECT[key], table)
        elif key in _OF_CSV:
            result[_OF_CSV[key]] = value
    return result


def _check(options: Mapping[str, str], key: str, wanted: str, table: str) -> None:
    value = options.get(key, wanted)
    if value.lower() not in (wanted, repr(wanted)[1:-1]):
        problem = f"table {table} has {key!r} = {value!r}, and only {wanted!r} is there for options of that form"
        raise SqlError(problem, "write the options of today, which begin with 'connector'")


__all__ = ["current_options"]
