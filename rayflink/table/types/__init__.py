"""SQL's data types: a class for each kind of values, and the `DataTypes` that make them. The path is PyFlink's.

`data_type` is the base of all and has the kinds there are and the fields of rows; `atomic_types`, `interval_types`,
`nested_types` and `program_types` have the classes, `data_types` makes them, and `arrow_conversion` turns them into
Arrow's types and back. All are values: they are compared, hashed, pickled, and change no more once something uses them.

What a type means in a query is in `rayflink.table.plan`, values are converted in `rayflink.table.conversion`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.common.types import Row as Row
    from rayflink.common.types import RowKind as RowKind
    from rayflink.table.types.arrow_conversion import create_arrow_schema as create_arrow_schema
    from rayflink.table.types.arrow_conversion import from_arrow_type as from_arrow_type
    from rayflink.table.types.arrow_conversion import to_arrow_type as to_arrow_type
    from rayflink.table.types.atomic_types import AtomicType as AtomicType
    from rayflink.table.types.atomic_types import BigIntType as BigIntType
    from rayflink.table.types.atomic_types import BinaryType as BinaryType
    from rayflink.table.types.atomic_types import BooleanType as BooleanType
    from rayflink.table.types.atomic_types import CharType as CharType
    from rayflink.table.types.atomic_types import DateType as DateType
    from rayflink.table.types.atomic_types import DecimalType as DecimalType
    from rayflink.table.types.atomic_types import DoubleType as DoubleType
    from rayflink.table.types.atomic_types import FloatType as FloatType
    from rayflink.table.types.atomic_types import FractionalType as FractionalType
    from rayflink.table.types.atomic_types import IntegralType as IntegralType
    from rayflink.table.types.atomic_types import IntType as IntType
    from rayflink.table.types.atomic_types import LocalZonedTimestampType as LocalZonedTimestampType
    from rayflink.table.types.atomic_types import NullType as NullType
    from rayflink.table.types.atomic_types import NumericType as NumericType
    from rayflink.table.types.atomic_types import SmallIntType as SmallIntType
    from rayflink.table.types.atomic_types import TimestampType as TimestampType
    from rayflink.table.types.atomic_types import TimeType as TimeType
    from rayflink.table.types.atomic_types import TinyIntType as TinyIntType
    from rayflink.table.types.atomic_types import VarBinaryType as VarBinaryType
    from rayflink.table.types.atomic_types import VarCharType as VarCharType
    from rayflink.table.types.atomic_types import ZonedTimestampType as ZonedTimestampType
    from rayflink.table.types.data_type import INTEGERS as INTEGERS
    from rayflink.table.types.data_type import MOST_DIGITS as MOST_DIGITS
    from rayflink.table.types.data_type import MOST_LENGTH as MOST_LENGTH
    from rayflink.table.types.data_type import DataType as DataType
    from rayflink.table.types.data_type import Root as Root
    from rayflink.table.types.data_type import RowField as RowField
    from rayflink.table.types.data_type import type_checked as type_checked
    from rayflink.table.types.data_types import DataTypes as DataTypes
    from rayflink.table.types.interval_types import DayTimeIntervalType as DayTimeIntervalType
    from rayflink.table.types.interval_types import Resolution as Resolution
    from rayflink.table.types.interval_types import YearMonthIntervalType as YearMonthIntervalType
    from rayflink.table.types.nested_types import ArrayType as ArrayType
    from rayflink.table.types.nested_types import ListViewType as ListViewType
    from rayflink.table.types.nested_types import MapType as MapType
    from rayflink.table.types.nested_types import MapViewType as MapViewType
    from rayflink.table.types.nested_types import MultisetType as MultisetType
    from rayflink.table.types.nested_types import RowType as RowType
    from rayflink.table.types.program_types import RawType as RawType
    from rayflink.table.types.program_types import UserDefinedType as UserDefinedType
    from rayflink.table.types.program_types import stored_type as stored_type
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.common.types": "Row RowKind",
            "rayflink.table.types.arrow_conversion": "create_arrow_schema from_arrow_type to_arrow_type",
            "rayflink.table.types.atomic_types": (
                "AtomicType BigIntType BinaryType BooleanType CharType DateType DecimalType DoubleType FloatType "
                "FractionalType IntType IntegralType LocalZonedTimestampType NullType NumericType SmallIntType "
                "TimeType TimestampType TinyIntType VarBinaryType VarCharType ZonedTimestampType"
            ),
            "rayflink.table.types.data_type": "DataType INTEGERS MOST_DIGITS MOST_LENGTH Root RowField type_checked",
            "rayflink.table.types.data_types": "DataTypes",
            "rayflink.table.types.interval_types": "DayTimeIntervalType Resolution YearMonthIntervalType",
            "rayflink.table.types.nested_types": "ArrayType ListViewType MapType MapViewType MultisetType RowType",
            "rayflink.table.types.program_types": "RawType UserDefinedType stored_type",
        },
    )
