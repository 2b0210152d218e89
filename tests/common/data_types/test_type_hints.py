"""Types from hints, classes, annotations and values."""

import datetime
import functools
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, List, NewType, Optional, TypeVar, Union  # noqa: UP035

import pytest

from rayflink.common.errors import InvalidTypesError
from rayflink.common.typeinfo import Types, infer_type, return_type_of, to_type_info
from rayflink.common.types import Row

PICKLED = Types.PICKLED_BYTE_ARRAY()


class Trade:
    price: int

    def __call__(self, value: str) -> float:
        return float(value)


@pytest.mark.spec("B04", "kinds", "B03", "declared")
@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (Types.SHORT(), Types.SHORT()),
        (str, Types.STRING()), (int, Types.BIG_INT()), (float, Types.DOUBLE()), (bool, Types.BOOLEAN()),
        (bytes, Types.PRIMITIVE_ARRAY(Types.BYTE())), (Decimal, Types.BIG_DEC()), (None, Types.VOID()),
        (datetime.date, Types.SQL_DATE()), (datetime.datetime, Types.SQL_TIMESTAMP()),
        (list[str], Types.LIST(Types.STRING())), (List[str], Types.LIST(Types.STRING())),  # noqa: UP006
        (tuple[str, Optional[int]], Types.TUPLE([Types.STRING(), Types.BIG_INT()])),  # noqa: UP045
        (tuple[int, ...], PICKLED), (List, PICKLED), (list, PICKLED),  # noqa: UP006
        (dict[str, bool | None], Types.MAP(Types.STRING(), Types.BOOLEAN())),
        (int | None, Types.BIG_INT()), (Optional[bool], PICKLED), (Union[int, str], PICKLED),  # noqa: UP007, UP045
        (Annotated[int, "x"], Types.BIG_INT()), (NewType("Id", int), Types.BIG_INT()),
        (Any, PICKLED), (Trade, PICKLED), (TypeVar("T"), PICKLED), (set[int], PICKLED), (Row, PICKLED),
    ],
)  # fmt: skip
def test_a_type_is_declared_by_type_information_hint_or_class(declared, expected):
    assert to_type_info(declared) == expected


@pytest.mark.spec("B04", "kinds")
@pytest.mark.parametrize("declared", [5, "int", [int], Types.STRING, lambda x: x])
def test_what_is_no_type_is_refused_when_declared(declared):
    with pytest.raises(InvalidTypesError, match=r"is not a type; .* \(at job.py:9\)"):
        to_type_info(declared, "job.py:9")
    if declared is Types.STRING:
        with pytest.raises(InvalidTypesError, match=r"call it: Types.STRING\(\)"):
            to_type_info(declared)


@pytest.mark.spec("B03", "signatures")
def test_a_function_says_its_type_by_its_annotation():
    def words(line: str) -> Iterator[tuple[str, int]]:
        yield line, 1

    assert return_type_of(words, many=True) == Types.TUPLE([Types.STRING(), Types.BIG_INT()])
    assert return_type_of(words) == PICKLED
    assert return_type_of(Trade()) == Types.DOUBLE() == return_type_of(functools.partial(Trade()))
    assert return_type_of(Trade().__call__) == Types.DOUBLE()
    assert return_type_of(str) == Types.STRING() and return_type_of(str, many=True) is None


@pytest.mark.spec("B05", "lambdas")
def test_a_lambda_or_an_unknown_annotation_says_nothing():
    def unknown(value) -> "NoSuchName":  # noqa: F821
        return value

    def bare(value) -> Iterator:
        return value

    def wrong(value) -> 5:
        return value

    assert [return_type_of(f) for f in (lambda x: x, unknown, wrong, print, Trade.__init__)] == [None] * 5
    assert return_type_of(bare, many=True) is None
    assert to_type_info(tuple[str, int]) == Types.TUPLE([Types.STRING(), Types.BIG_INT()])


@pytest.mark.spec("B03", "values")
def test_a_value_shows_its_type():
    assert infer_type(("a", 1, None)) == Types.TUPLE([Types.STRING(), Types.BIG_INT(), Types.VOID()])
    assert infer_type(Row(a=1)) == Types.ROW_NAMED(["a"], [Types.BIG_INT()])
    assert infer_type([1.5, None]) == Types.LIST(Types.DOUBLE())
    assert infer_type({"k": True}) == Types.MAP(Types.STRING(), Types.BOOLEAN())
    for opaque in ([1, "a"], [], {}, {None: 1}, {1}, Trade(), True.__class__):
        assert infer_type(opaque) == PICKLED
