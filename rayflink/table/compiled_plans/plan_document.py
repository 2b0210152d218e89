"""The document of a compiled plan: its nodes with their versions, and what it was compiled with.

A plan of another version, a node or a field that is not known end in an error that says so: nothing is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rayflink.version import __version__

from ..catalog.stored_definitions import Fields
from ..errors import SqlError
from ..physical.operator_pins import StoredOperator
from ..plan.aggregate_call import AggregateCall
from ..plan.groups import GroupAggregate
from ..plan.logical import Filter, Project, Relation, Scan, Sink, WindowAggregate
from ..plan.typed import Column
from ..runtime.aggregates.aggregates import AggregateKind
from .plan_forms import COMPILE_AGAIN, ensure_form
from .plan_tables import TableReader, TableWriter, with_abilities
from .plan_types import NODE_NAMES, NODE_TYPES
from .plan_values import ValueReader, ValueWriter

FLINK_VERSION = "2.3"
"""The version of Flink whose meaning of statements plans have."""
VERSION = 1
"""Of the document as a whole. Nodes have versions of their own."""
_PROPERTIES = ("id", "type", "description", "catalog_table", "operators")
"""What a node has beside its fields."""


@dataclass(frozen=True)
class PlanHeader:
    """The conditions under which a plan was compiled.

    Args:
        is_batch: the runtime mode.
        zone: the session's time zone.
        database: its current database.
        options: those by which steps are run, with their values.
    """

    is_batch: bool
    zone: str
    database: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class PlanNode:
    """A node of a document, as it was read.

    Args:
        operators: the steps of a program that it had when it was compiled.
    """

    relation: Relation
    operators: tuple[StoredOperator, ...]


class PlanWriter:
    """Writes a plan.

    Args:
        sinks: the optimized plans of the INSERTs.
        tables: writes tables and functions.
    """

    def __init__(self, sinks: Sequence[Sink], tables: TableWriter) -> None:
        self._tables = tables
        self._ids: dict[Relation, int] = {}
        self._sink_ids: dict[int, int] = {}
        self._relations: list[Relation] = []
        self._values = ValueWriter(self.node_of, tables.write_function)
        for sink in sinks:
            self._number(sink)

    def node_of(self, relation: Relation) -> int:
        """Return the number of the node of a relation."""
        return self._sink_ids[id(relation)] if isinstance(relation, Sink) else self._ids[relation]

    def document(self, header: PlanHeader, operators: Mapping[int, Sequence[StoredOperator]]) -> Fields:
        """Return the plan as JSON.

        Args:
            operators: number of a node -> its steps.

        Raises:
            SqlError: part of the plan is bound to this program.
        """
        nodes = enumerate(self._relations, start=1)
        return {
            "flinkVersion": FLINK_VERSION,
            "rayflinkVersion": __version__,
            "planVersion": VERSION,
            "mode": "BATCH" if header.is_batch else "STREAMING",
            "timeZone": header.zone,
            "database": header.database,
            "options": dict(header.options),
            "nodes": [self._node(number, relation, operators.get(number, ())) for number, relation in nodes],
        }

    def _number(self, relation: Relation) -> None:
        """Number the relations below one, and then that; equal ones are one node, as they are one in a program."""
        if relation in self._ids and not isinstance(relation, Sink):
            return
        for below in relation.inputs:
            self._number(below)
        for table in _tables_in(relation):
            self._number(table)
        self._relations.append(relation)
        if isinstance(relation, Sink):
            self._sink_ids[id(relation)] = len(self._relations)
        else:
            self._ids[relation] = len(self._relations)

    def _node(self, number: int, relation: Relation, operators: Sequence[StoredOperator]) -> Fields:
        name = NODE_NAMES.get(type(relation))
        if name is None:
            problem = f"the step {relation.explain_line()} is of the class {type(relation).__name__} of a rule"
            raise SqlError(problem, "remove the rule with PlannerConfig, or run it without compiling a plan")
        node: dict[str, object] = {"id": number, "type": name, "description": relation.explain_line()}
        try:
            node.update(self._values.fields(relation))
            if isinstance(relation, (Scan, Sink)):
                node["catalog_table"] = self._tables.write(relation)
        except SqlError as error:
            raise SqlError(f"no plan can be compiled: {error.problem}", error.remedy, "", relation.place) from error
        if operators:
            node["operators"] = [{"name": operator.name, "id": operator.operator_id} for operator in operators]
        return node


class PlanReader:
    """Reads the nodes of a plan, each after those below it.

    Args:
        tables: reads tables and functions.
    """

    def __init__(self, tables: TableReader) -> None:
        self._tables = tables
        self._relations: dict[int, Relation] = {}
        self._values = ValueReader(self._relation_of, tables.read_function)

    def nodes(self, document: Fields) -> Iterator[PlanNode]:
        """Yield the nodes.

        Raises:
            SqlError: this version does not know one.
        """
        for fields in _list(document, "nodes"):
            operators = _operators(fields)
            relation = self._relation(fields)
            self._relations[fields["id"]] = relation
            yield PlanNode(relation, operators)

    def _relation_of(self, number: int) -> Relation:
        try:
            return self._relations[number]
        except KeyError:
            problem = f"a node of the plan is on node {number}, which is not before it"
            raise SqlError(problem, COMPILE_AGAIN) from None

    def _relation(self, node: Fields) -> Relation:
        kind = _class_of(node)
        what = f"node {node['id']}, {node.get('description', node['type'])},"
        try:
            own = {name: value for name, value in node.items() if name not in _PROPERTIES}
            fields = dict(self._values.fields(kind, own, what))
            if issubclass(kind, (Scan, Sink)) and ("catalog_table" not in node or not fields["path"]):
                raise SqlError(f"{what} lacks its 'catalog_table' or its 'path'", COMPILE_AGAIN)
            if issubclass(kind, Scan):
                path, table = self._tables.definition(node["catalog_table"])
                source = self._tables.connect.source(path, table)
                pushed = with_abilities(source, fields.get("abilities", ()), ".".join(path))
                fields.update(source=pushed, definition=table)
            elif issubclass(kind, Sink):
                path, table = self._tables.definition(node["catalog_table"])
                fields.update(sink=self._tables.connect.sink(path, table), definition=table)
            relation = kind(**fields)
            if isinstance(relation, (GroupAggregate, WindowAggregate)):
                _ensure_aggregates(relation.calls)
            if not _has_columns(relation):
                raise SqlError(f"{what} has other columns than what it reads or writes", COMPILE_AGAIN)
            return relation
        except SqlError as error:
            problem = f"the plan cannot be run: {error.problem}"
            raise SqlError(problem, error.remedy) from error


def parse_document(text: str) -> Fields:
    """Return the document of a text.

    Raises:
        SqlError: it is no plan, or one of another version.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise SqlError(f"the plan is no JSON: {error}", "give a plan as COMPILE PLAN wrote it") from error
    version = document.get("planVersion") if isinstance(document, dict) else None
    if not isinstance(document, dict) or version is None:
        is_flinks = isinstance(document, dict) and "flinkVersion" in document
        problem = "the plan was compiled by Flink" if is_flinks else "the text is no plan: it has no 'planVersion'"
        raise SqlError(problem, "compile the statement here, with compile_plan_sql() or COMPILE PLAN")
    if version != VERSION:
        writer = document.get("rayflinkVersion", "another version")
        problem = f"the plan has the version {version}, and this rayflink {__version__} reads version {VERSION}"
        raise SqlError(problem, f"run it with rayflink {writer}, which compiled it, or {COMPILE_AGAIN}")
    return document


def document_text(document: Fields) -> str:
    """Return a document as JSON; what fits in a line is in a line.

    >>> print(document_text({"id": 1, "columns": ["a" * 60, "b" * 60]}), end="")
    {
      "id": 1,
      "columns": [
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
      ]
    }
    """
    return _json_text(document, "") + "\n"


def _json_text(value: object, indent: str) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= _WIDTH or not isinstance(value, (dict, list)):
        return line
    deeper, names = f"{indent}  ", [""] * len(value)
    if isinstance(value, dict):
        names = [f"{json.dumps(name, ensure_ascii=False)}: " for name in value]
    items = value.values() if isinstance(value, dict) else value
    lines = [f"{deeper}{name}{_json_text(item, deeper)}" for name, item in zip(names, items, strict=True)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([opening, ",\n".join(lines), f"{indent}{closing}"])


_WIDTH = 110
"""Characters of a line of a plan, at most, where that is possible."""


def header_of(document: Fields) -> PlanHeader:
    """Return what a plan was compiled with.

    Raises:
        SqlError: the document lacks it.
    """
    lacking = [name for name in ("mode", "timeZone", "database", "options") if name not in document]
    if lacking:
        raise SqlError(f"the plan lacks {lacking[0]!r}", COMPILE_AGAIN)
    for name in ("mode", "timeZone", "database"):
        ensure_form(document[name], "str", f"the plan has {name!r}")
    ensure_form(document["options"], "dict[str, str]", "the plan has 'options'")
    if document["mode"] not in ("BATCH", "STREAMING"):
        raise SqlError(f"the plan has the mode {document['mode']!r}, wanted BATCH or STREAMING", COMPILE_AGAIN)
    return PlanHeader(document["mode"] == "BATCH", document["timeZone"], document["database"], document["options"])


def _ensure_aggregates(calls: Sequence[AggregateCall]) -> None:
    """Check that there are the functions that groups are aggregated by.

    Raises:
        SqlError: this version does not know one.
    """
    known = {kind.value for kind in AggregateKind}
    unknown = [call.name for call in calls if call.function is None and call.name not in known]
    if unknown:
        raise SqlError(f"the plan calls the function {unknown[0]}, which this version does not know", COMPILE_AGAIN)


def _has_columns(relation: Relation) -> bool:
    """Return whether there are the columns that a relation speaks of, as far as that is seen from it alone."""
    if isinstance(relation, Sink):
        return len(relation.declared) == len(relation.input.schema)
    if isinstance(relation, (GroupAggregate, WindowAggregate)):
        return _has_columns_of_groups(relation)
    if not isinstance(relation, (Project, Filter)):
        return True
    columns = (part for expr in relation.exprs_of_rows for part in expr.walk() if isinstance(part, Column))
    is_whole = not isinstance(relation, Project) or len(relation.exprs) == len(relation.schema)
    return is_whole and all(0 <= column.index < len(relation.input.schema) for column in columns)


def _has_columns_of_groups(relation: GroupAggregate | WindowAggregate) -> bool:
    """Return whether there are the columns that groups are made of and aggregated, and one for each result."""
    numbers = {*relation.grouping, *(number for call in relation.calls for number in call.arguments)}
    numbers |= {call.filter for call in relation.calls if call.filter is not None}
    if isinstance(relation, WindowAggregate):
        numbers |= {*(relation.bounds or ())}
    results = len(relation.grouping) + len(relation.calls)
    columns = len(relation.schema)
    has_results = columns == results if isinstance(relation, GroupAggregate) else columns >= results
    return has_results and numbers <= set(range(len(relation.input.schema)))


def _operators(node: Fields) -> tuple[StoredOperator, ...]:
    """Return the steps of a program that a node had.

    Raises:
        SqlError: they have another form.
    """
    steps = node.get("operators", [])
    ensure_form(steps, "list[dict[str, str]]", f"node {node.get('id')} of the plan has 'operators'")
    if any(not {"name", "id"} <= step.keys() for step in steps):
        raise SqlError(f"an operator of node {node.get('id')} of the plan lacks 'name' or 'id'", COMPILE_AGAIN)
    return tuple(StoredOperator(step["name"], step["id"]) for step in steps)


def _class_of(node: Fields) -> type[Relation]:
    """Return the class of a node.

    Raises:
        SqlError: this version does not know its type, or not this version of it.
    """
    lacking = [name for name in ("id", "type") if name not in node]
    if lacking:
        raise SqlError(f"a node of the plan lacks {lacking[0]!r}", COMPILE_AGAIN)
    ensure_form(node["id"], "int", "a node of the plan has 'id'")
    match = re.fullmatch(r"([a-z-]+)_(\d+)", str(node["type"]))
    known = NODE_TYPES.get(match[1]) if match else None
    what = f"node {node['id']} of the plan is of the type {node['type']!r}"
    if match is None or known is None:
        raise SqlError(f"{what}, which this version does not know", f"run it with a later version, or {COMPILE_AGAIN}")
    version, kind = known
    if int(match[2]) != version:
        problem = f"{what}, and this version knows version {version} of it"
        raise SqlError(problem, f"run it with the version that compiled it, or {COMPILE_AGAIN}")
    return kind


def _list(document: Fields, name: str) -> Sequence[Fields]:
    nodes = document.get(name)
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, dict) for node in nodes):
        raise SqlError(f"the plan has no {name!r}", COMPILE_AGAIN)
    return nodes


def _tables_in(relation: Relation) -> list[Relation]:
    """Return relations that another has and that are no inputs of it: the tables of lookup joins."""
    table = getattr(relation, "table", None)
    return [table] if isinstance(table, Scan) else []


__all__ = [
    "FLINK_VERSION", "PlanHeader", "PlanNode", "PlanReader", "PlanWriter", "document_text", "header_of",
    "parse_document",
]  # fmt: skip
