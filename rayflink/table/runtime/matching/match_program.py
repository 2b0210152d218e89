"""A MATCH_RECOGNIZE as what its operator runs: the automaton, the values that it needs of rows, and its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rayflink.cep.conditions import Test
from rayflink.cep.nfa.automaton import Automaton, Unit
from rayflink.cep.nfa.logic import TRUTH, Bit, Both, Logic, MatchTest
from rayflink.cep.nfa.partial_matches import Node
from rayflink.cep.nfa.raw_values import raw_column, raw_values
from rayflink.cep.nfa.row_patterns import RowConditions, compile_row_pattern
from rayflink.common.functions.callables import as_single

from ...plan.matching import ClassifierReference, MatchRecognize
from ...plan.typed import Call, Column, Expr, Session
from .match_values import RowValues, path_of, reader
from .scalar_code import Scalar, scalar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def automaton_of(plan: MatchRecognize) -> Automaton:
    """Return the automaton of a pattern, in which the row condition of a variable is a bit, the rest of it a test."""
    logics: list[Logic] = []
    units: list[Unit] = []
    tests: list[Test] = []
    for name, definition in zip(plan.variables, plan.definitions, strict=True):
        parts: list[Logic] = []
        if definition.row_condition is not None:
            parts.append(Bit(len(units)))
            test = _named_test(str(definition.row_condition), False)
            units.append(Unit((test,), test, name))
        if definition.match_condition is not None:
            parts.append(MatchTest(len(tests)))
            tests.append(_named_test(str(definition.match_condition), True))
        logics.append(TRUTH if not parts else parts[0] if len(parts) == 1 else Both(*parts))
    conditions = RowConditions(tuple(logics), tuple(units), tuple(tests))
    return compile_row_pattern(plan.pattern, plan.variables, conditions, plan.skip, plan.within_ms)


def _named_test(label: str, is_iterative: bool) -> Test:
    """Return a test that is known by its name; it is evaluated by the operator."""
    return Test(as_single(bool, "filter", "a condition", "DEFINE", 1), is_iterative, label)


class MatchProgram:
    """The parts of a MATCH_RECOGNIZE.

    Args:
        plan: whose input has a schema, and need not be one that can be run.
        schema: of the result.
    """

    def __init__(self, plan: MatchRecognize, schema: pa.Schema) -> None:
        self.plan, self._schema = plan, schema
        self.row_conditions = [item.row_condition for item in plan.definitions if item.row_condition is not None]
        self._match_conditions = [
            (variable, item.match_condition)
            for variable, item in enumerate(plan.definitions)
            if item.match_condition is not None
        ]
        self.field_types = [plan.input.schema[field.column].type.to_arrow() for field in plan.fields]
        self._place_values()

    def _place_values(self) -> None:
        """Decide which values of a row partial matches keep: those of references, and of conditions that may raise."""
        plan = self.plan
        fields: dict[int, int] = {}
        for reference in (*plan.conditions, *plan.measures):
            if not isinstance(reference, ClassifierReference) and reference.field is not None:
                fields.setdefault(reference.field, len(fields))
        for condition in self.row_conditions:
            if isinstance(condition, Call) and condition.may_raise:
                for part in condition.walk():
                    if isinstance(part, Column):
                        fields.setdefault(part.index, len(fields))
        self.stored_fields = list(fields)
        self._places = fields
        self._columns_at = len(fields)
        self._measures = [reader(item, fields, plan.variables) for item in plan.measures]
        self._are_final = [item.is_final for item in plan.measures]

    @property
    def stored_columns(self) -> list[pa.Field]:
        """Return the names and types of the values of a row that partial matches have; no names for those of keys."""
        schema = self.plan.input.schema
        fields = [self.plan.fields[number] for number in self.stored_fields]
        columns = [pa.field(field.describe(schema[field.column].name), schema[field.column].type.to_arrow())
                   for field in fields]  # fmt: skip
        names = ["" if column in self.plan.partition else schema[column].name for column in self.plan.row_columns]
        return [*columns, *(schema[column].type.to_arrow_field(name)
                            for name, column in zip(names, self.plan.row_columns, strict=True))]  # fmt: skip

    @property
    def exprs(self) -> list[Expr]:
        """Return all expressions that are evaluated."""
        return [*self.row_conditions, *(condition for _, condition in self._match_conditions)]

    def compile_tests(self, session: Session) -> None:
        """Make the conditions on partial matches ready to be evaluated."""
        plan = self.plan
        self._readers = [reader(item, self._places, plan.variables) for item in plan.conditions]
        self._tests: list[tuple[int, Scalar, list[int]]] = []
        for variable, condition in self._match_conditions:
            used = sorted({item.index for item in condition.walk() if isinstance(item, Column)})
            self._tests.append((variable, scalar(condition, session), used))
        self._blank: list[Any] = [None] * len(plan.conditions)

    def test(self, number: int, row: RowValues, last_node: Node | None) -> bool:
        """Return whether a row meets a condition on the partial match."""
        variable, condition, used = self._tests[number]
        node = (variable, -1, row, last_node)
        values = self._blank
        for index in used:
            values[index] = self._readers[index](node)
        return condition(values) is True

    def fields_of(self, row: RowValues) -> list[pa.Array]:
        """Return the fields of one row as columns; those that are not stored as nulls."""
        columns = [pa.nulls(1, kind) for kind in self.field_types]
        for field, place in self._places.items():
            columns[field] = raw_column([row[place]], self.field_types[field])
        return columns

    def rows(
        self, fields: Sequence[pa.Array], columns: Sequence[pa.Array], chosen: NDArray[np.intp]
    ) -> list[RowValues]:
        """Return the values of some rows that partial matches need."""
        needed = [fields[index] for index in self.stored_fields] + [columns[index] for index in self.plan.row_columns]
        if not needed:
            return [()] * len(chosen)
        indices = pa.array(chosen)
        return list(zip(*(raw_values(column.take(indices)) for column in needed), strict=True))

    def results(self, nodes: Sequence[Node]) -> pa.RecordBatch:
        """Return the rows of matches.

        Args:
            nodes: the last node of each match.
        """
        if self.plan.is_all_rows:
            pairs = [(node, last) for last in nodes for node in path_of(last)]
            shown, lasts = [node for node, _ in pairs], [last for _, last in pairs]
        else:
            shown = lasts = list(nodes)
        first, columns = self._columns_at, []
        for number in range(len(self.plan.row_columns)):
            columns.append([node[2][first + number] for node in shown])
        for read, is_final in zip(self._measures, self._are_final, strict=True):
            columns.append(list(map(read, lasts if is_final else shown)))
        arrays = [raw_column(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


__all__ = ["MatchProgram", "automaton_of"]
