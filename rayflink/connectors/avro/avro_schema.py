"""Avro schemas: as users write them, in JSON, and as trees of nodes in which every name is resolved."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from rayflink.user_types import UserValue

if TYPE_CHECKING:
    from types import ModuleType

Json: TypeAlias = UserValue
"""A schema, or a part of one, as JSON is read: dicts, lists and strings."""

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
NO_DEFAULT = object()


class BadAvroSchema(ValueError):
    """A schema is no Avro schema, or asks for what cannot be represented.

    Args:
        problem: what was found, and what was wanted.
        remedy: what to change.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


def fastavro_package() -> ModuleType:
    """Return the package `fastavro`.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import fastavro
    except ImportError as error:
        raise ImportError("Avro needs fastavro: pip install 'rayflink[avro]' on every node") from error
    package: ModuleType = fastavro
    return package


@dataclass(frozen=True, eq=False)
class SchemaField:
    """A field of a record.

    Args:
        default: as JSON; NO_DEFAULT where there is none.
        aliases: names under which writers may know it.
    """

    name: str
    node: SchemaNode
    default: object = NO_DEFAULT
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SchemaNode:
    """A type in a schema.

    Args:
        kind: `record`, `union`, `long` and so on.
        name: full name of a record, enum or fixed.
        logical: the logical type; "": there is none.
        precision: of a decimal.
        scale: of a decimal.
        size: bytes of a fixed.
        symbols: of an enum.
        items: the element of an array, the value of a map, the branches of a union.
        fields: of a record.
    """

    kind: str
    name: str = ""
    logical: str = ""
    precision: int = 0
    scale: int = 0
    size: int = 0
    symbols: tuple[str, ...] = ()
    items: tuple[SchemaNode, ...] = ()
    fields: tuple[SchemaField, ...] = ()

    @property
    def is_nullable(self) -> bool:
        """Return whether it is a union with null, or null."""
        return self.kind == "null" or any(item.kind == "null" for item in self.items if self.kind == "union")

    @property
    def value(self) -> SchemaNode:
        """Return the type of what is not null; a union of several types stays one."""
        branches = [item for item in self.items if item.kind != "null"]
        return branches[0] if self.kind == "union" and len(branches) == 1 else self

    def field(self, name: str) -> SchemaField | None:
        """Return the field of a name; None: there is none."""
        return next((field for field in self.fields if field.name == name), None)

    def __str__(self) -> str:
        if self.kind == "union":
            return f"[{', '.join(map(str, self.items))}]"
        return self.logical or self.name or self.kind


class AvroSchema:
    """An Avro schema.

    >>> schema = AvroSchema.parse_string('{"type": "array", "items": "int"}')
    >>> str(schema), schema.root.kind
    ('{"type":"array","items":"int"}', 'array')

    Args:
        definition: the schema as JSON is read: dicts, lists and strings.

    Raises:
        BadAvroSchema: it is none.
        ImportError: fastavro is not installed.
    """

    def __init__(self, definition: Json) -> None:
        package = fastavro_package()
        try:
            package.parse_schema(json.loads(json.dumps(definition)))
        except Exception as error:  # fastavro raises errors of several sorts
            remedy = "correct it as https://avro.apache.org/docs/ describes schemas"
            raise BadAvroSchema(f"this is no Avro schema ({type(error).__name__}: {error})", remedy) from error
        self.definition = definition

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """Return the schema that JSON describes.

        Raises:
            BadAvroSchema: it describes none.
        """
        try:
            definition = json.loads(json_schema)
        except ValueError as error:
            text = json_schema.strip()
            if text not in PRIMITIVES:  # a schema may be the name of a type alone
                raise BadAvroSchema(f"the schema is no JSON ({error})", "write it as JSON") from error
            definition = text
        return AvroSchema(definition)

    @staticmethod
    def parse_file(file_path: str | os.PathLike[str]) -> AvroSchema:
        """Return the schema in a file.

        Raises:
            OSError: the file cannot be read.
            BadAvroSchema: it contains no schema.
        """
        with open(file_path, encoding="utf-8") as file:
            return AvroSchema.parse_string(file.read())

    @cached_property
    def root(self) -> SchemaNode:
        """The schema as a tree.

        Raises:
            RecursiveSchema: a type contains itself.
        """
        return _Tree().node(self.definition, "")

    def __str__(self) -> str:
        return json.dumps(self.definition, separators=(",", ":"), ensure_ascii=False)

    def __repr__(self) -> str:
        return f"AvroSchema.parse_string({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AvroSchema) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[object, ...]:
        return AvroSchema.parse_string, (str(self),)


class RecursiveSchema(BadAvroSchema):
    """A type contains itself, so that its values have no columns."""


class _Tree:
    """Builds a tree, and knows the types that have been defined."""

    def __init__(self) -> None:
        self._known: dict[str, SchemaNode] = {}
        self._open: set[str] = set()

    def node(self, part: Json, namespace: str) -> SchemaNode:
        if isinstance(part, str):
            return self._named(part, namespace)
        if isinstance(part, Sequence):
            return SchemaNode("union", items=tuple(self.node(branch, namespace) for branch in part))
        assert isinstance(part, Mapping), f"found {part!r} in a schema that fastavro accepts"
        kind = part["type"]
        if not isinstance(kind, str):
            return self.node(kind, namespace)
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(part, namespace)
        if kind == "array":
            return SchemaNode("array", items=(self.node(part["items"], namespace),))
        if kind == "map":
            return SchemaNode("map", items=(self.node(part["values"], namespace),))
        schema_node = self._named(kind, namespace)
        return SchemaNode(kind, **_logical(part)) if kind in PRIMITIVES else schema_node

    def _named(self, name: str, namespace: str) -> SchemaNode:
        if name in PRIMITIVES:
            return SchemaNode(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        schema_node = self._known.get(full) or self._known.get(name)
        if schema_node is None:
            remedy = "read it as records, without columns, or leave the field out"
            raise RecursiveSchema(f"the type {full} contains itself, which columns cannot represent", remedy)
        return schema_node

    def _definition(self, part: Mapping[str, Json], namespace: str) -> SchemaNode:
        name = str(part["name"])
        space = name.rpartition(".")[0] if "." in name else str(part.get("namespace") or namespace)
        full = name if "." in name or not space else f"{space}.{name}"
        if part["type"] == "enum":
            node = SchemaNode("enum", full, symbols=tuple(part["symbols"]))
        elif part["type"] == "fixed":
            node = SchemaNode("fixed", full, size=int(part["size"]), **_logical(part))
        else:
            fields = part["fields"]
            node = SchemaNode("record", full, fields=tuple(self._field(field, space) for field in fields))
        self._known[full] = node
        return node

    def _field(self, part: Mapping[str, Json], namespace: str) -> SchemaField:
        node = self.node(part["type"], namespace)
        default: object = part.get("default", NO_DEFAULT)
        return SchemaField(str(part["name"]), node, default, tuple(part.get("aliases") or ()))


def _logical(part: Mapping[str, Json]) -> dict[str, Json]:
    logical = part.get("logicalType")
    if not isinstance(logical, str):
        return {}
    if logical != "decimal":
        return {"logical": logical}
    precision, scale = int(part.get("precision", 0)), int(part.get("scale", 0))
    return {"logical": logical, "precision": precision, "scale": scale} if precision > 0 else {}


__all__ = [
    "NO_DEFAULT", "PRIMITIVES", "AvroSchema", "BadAvroSchema", "Json", "RecursiveSchema", "SchemaField", "SchemaNode",
    "fastavro_package",
]  # fmt: skip
