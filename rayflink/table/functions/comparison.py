"""Operators that compare: = <> < <= > >=, IS NULL, IS DISTINCT FROM, IN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.casts.casts import converted
from rayflink.table.functions.casts.number_casts import exact_decimal
from rayflink.table.functions.decimals import compare
from rayflink.table.functions.declaring import (
    ANYTHING,
    BOOLEAN,
    Family,
    by_columns,
    is_nullable,
    takes,
)
from rayflink.table.functions.nested_equality import NESTED, equal_or_both_null
from rayflink.table.functions.value_lists import ValueList
from rayflink.table.plan.type_rules import are_comparable, common_type
from rayflink.table.plan.typed import Arguments, Call, Expr, Session, Values
from rayflink.table.types import DataType, Root

comparison = Family("Comparison")
_LISTED = (Root.BOOLEAN, Root.NULL, *NESTED)
"""Types whose values no kernel compares as they are."""


def _infer(args: Sequence[Expr]) -> DataType | str:
    if len(args) != 2 or not are_comparable(args[0].type, args[1].type):
        return "two values of one kind: numbers, strings, times, truth values"
    return BOOLEAN.as_nullable(is_nullable(args))


def _infer_ordered(args: Sequence[Expr]) -> DataType | str:
    result = _infer(args)
    nested = any(arg.type.root in NESTED for arg in args)
    return "two values with an order: numbers, strings, times, truth values" if nested else result


def _type_of_all(types: Sequence[DataType]) -> DataType:
    kind = common_type(types)
    return next(kind_ for kind_ in types if not kind_.is_text) if kind is None else kind  # a text beside a time


def alike(values: Sequence[Values], types: Sequence[DataType], session: Session) -> tuple[list[Values], DataType]:
    """Convert values of several types to the one in which they are compared."""
    kind = _type_of_all(types)
    return [converted(value, source, kind, session) for value, source in zip(values, types, strict=True)], kind


def _compared(name: str) -> Callable[[Arguments], Values]:
    kernel = getattr(pc, name)

    def computed(arguments: Arguments) -> Values:
        left, right = (arg.type for arg in arguments.call.args)
        a, b = arguments.values
        if left.root is Root.DECIMAL and right.is_exact or right.root is Root.DECIMAL and left.is_exact:
            return compare(kernel, exact_decimal(a, left), exact_decimal(b, right))
        if a.type == b.type and left.root is right.root and left.root not in _LISTED:
            return kernel(a, b)
        (a, b), kind = alike([a, b], [left, right], arguments.session)
        if kind.root in NESTED:
            return _nested(arguments, a, b, name == "not_equal")
        if kind.root is Root.NULL:
            return pc.cast(a, pyarrow.bool_())
        if kind.root is Root.BOOLEAN:
            return kernel(pc.cast(a, pyarrow.int8()), pc.cast(b, pyarrow.int8()))
        return kernel(a, b)

    return computed


def _nested(arguments: Arguments, a: Values, b: Values, unequal: bool) -> Values:
    """Rows, arrays and maps are equal or not; unknown only where one is null itself."""

    def computed(_: Arguments, values: Sequence[Any]) -> pyarrow.Array:
        result = equal_or_both_null(*values)
        result = pc.invert(result) if unequal else result
        both_valid = pc.and_(pc.is_valid(values[0]), pc.is_valid(values[1]))
        return pc.if_else(both_valid, result, pyarrow.scalar(None, pyarrow.bool_()))

    return by_columns(computed)(Arguments([a, b], arguments.rows, arguments.call, arguments.session))


def _may_misread(call: Call) -> bool:
    """Return whether a string is compared with a time, and so read as one."""
    strings = [kind.is_text for kind in (*(arg.type for arg in call.args), *_listed_types(call.options))]
    return any(strings) and not all(strings)


def _listed_types(options: tuple[Any, ...]) -> list[DataType]:
    """Return the types of the constants of a long IN."""
    return [kind for listed in options for kind in listed.types]


for _sign, _name, _about in (
    ("=", "equal", "Whether two values are equal; unknown where one is null."),
    ("<>", "not_equal", "Whether two values differ; unknown where one is null."),
    ("<", "less", "Whether value1 is less."),
    ("<=", "less_equal", "Whether value1 is less or equal."),
    (">", "greater", "Whether value1 is greater."),
    (">=", "greater_equal", "Whether value1 is greater or equal."),
):
    comparison.add(
        f"value1 {_sign} value2",
        _about,
        _infer if _sign in ("=", "<>") else _infer_ordered,
        _compared(_name),
        name=_sign,
        aliases=("!=",) if _sign == "<>" else (),
        symbol=_sign,
        raises=_may_misread,
    )


@comparison("value IS NULL", "Whether the value is null.", takes(ANYTHING, gives=BOOLEAN, null=False), name="IS NULL")
def _is_null(arguments: Arguments) -> Values:
    return pc.is_null(arguments.values[0])


@comparison(
    "value IS NOT NULL",
    "Whether the value is not null.",
    takes(ANYTHING, gives=BOOLEAN, null=False),
    name="IS NOT NULL",
)
def _is_not_null(arguments: Arguments) -> Values:
    return pc.is_valid(arguments.values[0])


def _same(arguments: Arguments) -> Values:
    """Return whether both are equal or both are null."""
    a, b = arguments.values
    equal = pc.fill_null(_compared("equal")(arguments), False)
    return pc.or_(equal, pc.and_(pc.is_null(a), pc.is_null(b)))


def _never_null(args: Sequence[Expr]) -> DataType | str:
    result = _infer(args)
    return result.not_null() if isinstance(result, DataType) else result


comparison.add(
    "value1 IS DISTINCT FROM value2",
    "Whether two values differ, where null is equal to null.",
    _never_null,
    lambda arguments: pc.invert(_same(arguments)),
    name="IS DISTINCT FROM",
    symbol="IS DISTINCT FROM",
    raises=_may_misread,
)
comparison.add(
    "value1 IS NOT DISTINCT FROM value2",
    "Whether two values are equal, where null is equal to null.",
    _never_null,
    _same,
    name="IS NOT DISTINCT FROM",
    symbol="IS NOT DISTINCT FROM",
    raises=_may_misread,
)


def _infer_in(args: Sequence[Expr]) -> DataType | str:
    if len(args) < 2 or not all(are_comparable(args[0].type, arg.type) for arg in args[1:]):
        return "a value and values of its kind"
    return BOOLEAN.as_nullable(is_nullable(args))


def _infer_listed(args: Sequence[Expr], options: tuple[Any, ...]) -> DataType | str:
    if not options:
        return _infer_in(args)
    if not all(are_comparable(args[0].type, kind) for kind in _listed_types(options)):
        return f"a value that is compared with {', '.join(map(str, _listed_types(options)))}"
    return BOOLEAN.as_nullable(args[0].type.is_nullable or any(listed.has_null for listed in options))


def _is_listed(arguments: Arguments, listed: ValueList) -> Values:
    """Return whether values are constants of a long list."""
    (value,), (arg,) = arguments.values, arguments.call.args
    kind, session = _type_of_all([arg.type, *listed.types]), arguments.session

    def constants() -> pyarrow.Array:
        columns = [converted(values, own, kind, session) for own, values in listed.parts]
        return pyarrow.chunked_array(columns, kind.to_arrow()).combine_chunks()

    value_set = listed.once((arg.type, session.zone), constants)
    value = converted(value, arg.type, kind, session)
    rows = pyarrow.array([value.as_py()], value.type) if isinstance(value, pyarrow.Scalar) else value
    result, unknown = value_set.has(rows), pc.is_null(rows)
    if listed.has_null:
        unknown = pc.or_(unknown, pc.invert(pc.fill_null(result, False)))
    result = pc.if_else(unknown, pyarrow.scalar(None, pyarrow.bool_()), result)
    return result[0] if isinstance(value, pyarrow.Scalar) else result


def _is_in(arguments: Arguments) -> Values:
    if arguments.call.options:
        return _is_listed(arguments, *arguments.call.options)
    types = [arg.type for arg in arguments.call.args]
    values, kind = alike(arguments.values, types, arguments.session)
    value, candidates = values[0], values[1:]
    if (
        kind.root in NESTED
        or kind.is_approximate
        or not all(isinstance(candidate, pyarrow.Scalar) for candidate in candidates)
    ):
        return _one_of(arguments, value, candidates, kind)
    constants = [candidate for candidate in candidates if candidate.is_valid]
    result = pc.is_in(value, pyarrow.array([candidate.as_py() for candidate in constants], kind.to_arrow()))
    unknown = pc.is_null(value)
    if len(constants) < len(candidates):
        unknown = pc.or_(unknown, pc.invert(result))
    return pc.if_else(unknown, pyarrow.scalar(None, pyarrow.bool_()), result)


def _one_of(arguments: Arguments, value: Values, candidates: Sequence[Values], kind: DataType) -> Values:
    """Compare with one after the other: for types without a hash here, and floats, whose NaN is in no list."""
    result: Values = pyarrow.scalar(False)
    for candidate in candidates:
        equal = _nested(arguments, value, candidate, False) if kind.root in NESTED else pc.equal(value, candidate)
        result = pc.or_kleene(result, equal)
    return result


comparison.add(
    "value IN (value1 [, value2]*)",
    "Whether the value equals one of those listed; unknown if it equals none and one is null.",
    _infer_in,
    _is_in,
    name="IN",
    raises=_may_misread,
    by_options=_infer_listed,
)


def _infer_extreme(args: Sequence[Expr]) -> DataType | str:
    kind = common_type([arg.type for arg in args]) if args else None
    if kind is None or kind.root in NESTED:
        return "values with one order: numbers, strings or times"
    return kind.as_nullable(is_nullable(args))


def _extreme(best: str) -> Callable[[Arguments], Values]:
    def computed(arguments: Arguments) -> Values:
        kind = arguments.call.type
        pairs = zip(arguments.values, arguments.call.args, strict=True)
        values = [converted(value, arg.type, kind, arguments.session) for value, arg in pairs]
        if kind.root is Root.NULL:
            return values[0]
        if kind.root is Root.BOOLEAN:
            result = getattr(pc, best)(*[pc.cast(truth, pyarrow.int8()) for truth in values], skip_nulls=False)
            return pc.cast(result, pyarrow.bool_())
        return pc.cast(getattr(pc, best)(*values, skip_nulls=False), arguments.result)

    return computed


for _usage, _best, _meaning in (
    ("GREATEST(value1 [, value2]*)", "max_element_wise", "greatest"),
    ("LEAST(value1 [, value2]*)", "min_element_wise", "least"),
):
    comparison.add(_usage, f"The {_meaning} of the values, null where one is null.", _infer_extreme, _extreme(_best))
