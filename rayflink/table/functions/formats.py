"""PRINTF, and TYPEOF."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.casts.casts import converted
from rayflink.table.functions.casts.number_casts import as_number
from rayflink.table.functions.conditional import conditional
from rayflink.table.functions.declaring import ANYTHING, STRING, TEXT, TRUTH, Columns, by_values, column, takes
from rayflink.table.functions.maths import hex_digits
from rayflink.table.functions.strings import strings
from rayflink.table.plan.typed import Arguments, Expr, Values
from rayflink.table.types import DataType, DataTypes

_SPEC = re.compile(r"%(?P<flags>[-0+, ]*)(?P<width>\d+)?(?:\.(?P<places>\d+))?(?P<what>[sSdxXfbBcn%])")


@strings("PRINTF(format, value1, ...)",
       "The values formatted as by Java's String.format: %s %d %x %f %b %c %n %% with width, places and flags "
       "- 0 + ,; null if the values do not fit the format.",
       takes(TEXT, gives=STRING, more=ANYTHING, null=True))  # fmt: skip
@by_values(0)
def _printed(arguments: Arguments, columns: Columns, template: str) -> Any:
    rows, pieces, offset, number = len(columns[0]), [], 0, 1
    for spec in _SPEC.finditer(template):
        pieces.append(template[offset : spec.start()])
        offset = spec.end()
        if spec["what"] in "%n":
            pieces.append("%" if spec["what"] == "%" else "\n")
            continue
        if number >= len(columns):
            return pyarrow.nulls(rows, pyarrow.string())
        arg = arguments.call.args[number]
        piece = _piece(columns[number], arg.type, spec, arguments)
        if piece is None:
            return pyarrow.nulls(rows, pyarrow.string())
        pieces.append(pc.fill_null(piece, "null"))
        number += 1
    if "%" in template[offset:]:
        return pyarrow.nulls(rows, pyarrow.string())
    whole = [
        column(pyarrow.scalar(text), rows) if isinstance(text, str) else text for text in [*pieces, template[offset:]]
    ]
    return pc.binary_join_element_wise(*whole, "")


def _piece(values: Values, kind: DataType, spec: re.Match[str], arguments: Arguments) -> Any:
    """Return a value by its part of the format, None where it is of another kind."""
    what, flags = spec["what"], spec["flags"]
    if what in "sSbB":
        strings = converted(values, kind, STRING, arguments.session)
        if spec["places"]:
            strings = pc.utf8_slice_codeunits(strings, 0, int(spec["places"]))
        strings = pc.utf8_lower(strings) if what in "bB" or kind.root.name == "BOOLEAN" else strings
        strings = pc.utf8_upper(strings) if what == "S" else strings
    elif what in "dxXc":
        if not kind.is_integer:
            return None
        strings = _whole(values, what)
    else:
        if not kind.is_numeric or kind.is_integer:
            return None
        exact = as_number(values, kind, DataTypes.DECIMAL(38, min(int(spec["places"] or 6), 30)))
        strings = pc.cast(exact, pyarrow.string())
    return _laid_out(strings, flags, int(spec["width"] or 0))


def _whole(values: Values, what: str) -> Any:
    if what == "d":
        return pc.cast(values, pyarrow.string())
    if what == "c":
        return pyarrow.array([chr(number) for number in range(256)]).take(
            pc.bit_wise_and(pc.cast(values, pyarrow.int64()), 255)
        )
    digits = hex_digits(values)
    return digits if what == "X" else pc.utf8_lower(digits)


def _laid_out(strings: Values, flags: str, width: int) -> Any:
    if "," in flags:
        whole = pc.replace_substring_regex(strings, r"\..*$", "")
        fraction = pc.replace_substring_regex(strings, r"^[^.]*", "")
        for _ in range(12):
            whole = pc.replace_substring_regex(whole, r"^(-?[0-9]+)([0-9]{3})(,|$)", r"\1,\2\3")
        strings = pc.binary_join_element_wise(whole, fraction, "")
    if "+" in flags:
        signed = pc.binary_join_element_wise("+", strings, "")
        strings = pc.if_else(pc.starts_with(strings, "-"), strings, signed)
    if not width:
        return strings
    if "-" in flags:
        return pc.utf8_rpad(strings, width)
    return pc.utf8_zero_fill(strings, width) if "0" in flags else pc.utf8_lpad(strings, width)


def _type_name(arguments: Arguments) -> Values:
    return pyarrow.scalar(str(arguments.call.args[0].type))


def _infer_type_name(args: Sequence[Expr]) -> DataType | str:
    return takes(ANYTHING, TRUTH, gives=STRING, least=1, null=True)(args)


conditional.add("TYPEOF(value[, all])", "The type of the value, as a string.", _infer_type_name, _type_name)
