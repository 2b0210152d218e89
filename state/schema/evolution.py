"""State evolution: objects written with other fields become objects of the current classes.

A field that was added gets its default, one that was removed is left out. Where that is not enough, the class has a
class method `migrate_state(fields)`, which is given the fields as they were written, by name, and gives the object. A
class that moved or was renamed is found by `rayflink.state.moved-classes`. A field whose type does not take what was
written is refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any, Final

from rayflink.user_types import UserKey, UserRecord, UserValue

from ..classes.class_schemas import ClassSchema, found_class, is_named_tuple, schema_of, takes
from ..classes.unknown_objects import UnknownObject, loads_leniently
from ..descriptors import StateDescriptor
from ..errors import SnapshotMismatch
from ..group_content import Content, decode_group, encode_group
from .state_summary import StateSummary, merge_summaries, summary_of

HOOK = "migrate_state"
_MISSING: Final = object()
_LEAVES = frozenset({type(None), bool, int, float, complex, str, bytes})


class Verdict(Enum):
    """The outcome for state that a later version of a program restores."""

    KEEP = "keep"
    MIGRATE = "migrate"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and its reason."""

    verdict: Verdict
    reason: str = ""


def moved_classes(moved: Mapping[str, str]) -> dict[str, str]:
    """Convert dotted class names, old -> new, to `module:qualname`.

    >>> moved_classes({"shop.Cart": "shop.carts.Cart"})
    {'shop:Cart': 'shop.carts:Cart'}
    """
    return {_with_colon(old): _with_colon(new) for old, new in moved.items()}


def _with_colon(name: str) -> str:
    module, _, qualname = name.rpartition(".")
    return f"{module}:{qualname}"


@dataclass(frozen=True, slots=True)
class _Change:
    """A class whose objects were written in another form."""

    written: ClassSchema
    cls: type


def judge_class(written: ClassSchema, moved: Mapping[str, str]) -> tuple[Judgement, type | None]:
    """Judge whether objects of a class can be restored; also return their current class.

    Args:
        moved: names of classes -> names they have now.
    """
    name = moved.get(written.name, written.name)
    cls = found_class(name)
    if cls is None:
        where = f"class {written.name} is not there" if name == written.name else f"{written.name} is to be {name}"
        remedy = "" if name == written.name else ", which is not there"
        reason = f"{where}{remedy}; name the class it is now in rayflink.state.moved-classes"
        return Judgement(Verdict.REFUSE, reason), None
    current = schema_of(cls)
    was = f"{written.name} is now {name}: " if name != written.name else f"{written.name}: "
    changes = _changes(written, current, moved)
    if not changes and name == written.name:
        return Judgement(Verdict.KEEP), cls
    if callable(getattr(cls, HOOK, None)):
        return Judgement(Verdict.MIGRATE, f"{was}by its {HOOK}"), cls
    refused = [change for change, is_refused in changes if is_refused]
    if refused:
        return Judgement(Verdict.REFUSE, f"{was}{'; '.join(refused)}; or give the class a {HOOK}"), cls
    difference = ", ".join(change for change, _ in changes) or "the same fields"
    return Judgement(Verdict.MIGRATE, was + difference), cls


def _changes(written: ClassSchema, current: ClassSchema | None, moved: Mapping[str, str]) -> list[tuple[str, bool]]:
    """Return the differences between the old and the current fields, and for each whether it is refused."""
    if current is None or "object" in (written.form, current.form):
        form = "an object" if current is None else f"a {current.form}"
        same = current is not None and current.form == written.form
        return [] if same else [(f"a {written.form} became {form}", current is None)]
    before, now = dict(written.fields), dict(current.fields)
    cls = found_class(current.name)
    changes: list[tuple[str, bool]] = []
    for name in now.keys() - before.keys():
        has_default = cls is not None and _default(cls, name) is not _MISSING
        need = "" if has_default else ", which needs a default"
        changes.append((f"field {name!r} was added{need}", not has_default))
    changes += [(f"field {name!r} was removed", False) for name in before.keys() - now.keys()]
    for name in before.keys() & now.keys():
        old = _moved_names(before[name], moved)
        if not takes(now[name], old):
            changes.append((f"field {name!r} was {old} and is {now[name]}", True))
    if not changes and (written.form != current.form or written.names != current.names):
        changes.append(("its fields stand in another order", False))
    return sorted(changes)


def _moved_names(text: str, moved: Mapping[str, str]) -> str:
    for old, new in moved.items():
        text = text.replace(old, new)
    return text


def judge_type(written: object, declared: object) -> Judgement:
    """Judge values of a declared type, both as `describe_type` returns them; None where none was declared."""
    if written is None or declared is None or written == declared:
        return Judgement(Verdict.KEEP)
    if isinstance(written, list) and isinstance(declared, list) and _are_rows(written, declared):
        before, now = dict(written), dict(declared)
        if before and now and before.keys().isdisjoint(now):
            reason = f"its fields were {', '.join(before)} and are {', '.join(now)}, none of which was stored"
            return Judgement(Verdict.REFUSE, reason)
        for name in before.keys() & now.keys():
            inner = judge_type(before[name], now[name])
            if inner.verdict is Verdict.REFUSE:
                return Judgement(Verdict.REFUSE, f"field {name!r}: {inner.reason}")
        reasons = [f"field {name!r} was added and is None" for name in sorted(now.keys() - before.keys())]
        reasons += [f"field {name!r} was removed" for name in sorted(before.keys() - now.keys())]
        return Judgement(Verdict.MIGRATE, ", ".join(reasons) or "the fields of the row changed")
    if isinstance(written, str) and isinstance(declared, str) and declared in _WIDER_TYPES.get(written, ()):
        return Judgement(Verdict.KEEP)
    return Judgement(Verdict.REFUSE, f"its type was {written} and is {declared}")


def judge_types(written: StateSummary | None, declared: StateSummary) -> Judgement:
    """Judge the values of a state by the types that were declared then and are now."""
    if written is None:
        return Judgement(Verdict.KEEP)
    before, now = written.parsed_schema.get("type"), declared.parsed_schema.get("type")
    if not declared.kind.endswith(("map", "broadcast")):
        return judge_type(before, now)
    pairs = zip(before or (None, None), now or (None, None), strict=True)
    key, value = (judge_type(old, new) for old, new in pairs)
    if key.verdict is Verdict.MIGRATE:
        return Judgement(Verdict.REFUSE, f"keys of maps cannot change: {key.reason}")
    return key if key.verdict is Verdict.REFUSE else value


def fitting(
    written: StateSummary | None, descriptor: StateDescriptor, operator_uid: str
) -> Callable[[Any], Any] | None:
    """Return the function that converts a restored value to the type declared now; None where none is needed.

    Raises:
        SnapshotMismatch: the types differ too much.
    """
    judged = judge_types(written, summary_of(descriptor, descriptor.stored_kind, ()))
    if judged.verdict is Verdict.KEEP or written is None:
        return None
    if judged.verdict is Verdict.REFUSE:
        declared = " of ".join(str(type_info) for type_info in descriptor.types() if type_info is not None)
        raise SnapshotMismatch(descriptor.name, operator_uid, written.value_type, declared, judged.reason)
    row_type = descriptor.type_info
    return lambda value: _row_of(row_type, value)


def _row_of(row_type: Any, value: UserRecord) -> Any:
    """Return a row, or other record, with the fields of the type; missing ones are None, or absent from a dict."""
    if isinstance(value, dict):
        return {name: value[name] for name in row_type.get_field_names() if name in value}
    names = getattr(value, "_fields", None)
    if names is None:
        return value
    fields = dict(zip(names, value, strict=True))
    kinds = dict(zip(row_type.get_field_names(), row_type.get_field_types(), strict=True))
    for name, kind in kinds.items():
        inner = fields.get(name)
        fields[name] = _row_of(kind, inner) if hasattr(kind, "get_field_names") and inner is not None else inner
    cls = type(value)
    if isinstance(value, tuple):
        return _new_object(cls, fields)
    return cls(**{name: fields[name] for name in kinds})


def _are_rows(*types: list[Any]) -> bool:
    return all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for row in types for pair in row)


_WHOLE = ("Byte", "Short", "Integer", "Long", "BigInteger")
_WHOLE_SQL = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_WIDER_TYPES: dict[str, tuple[str, ...]] = {
    **{name: _WHOLE[index + 1 :] for index, name in enumerate(_WHOLE)},
    "Float": ("Double",),
    **{name: (*_WHOLE_SQL[index + 1 :], "DECIMAL", "FLOAT", "DOUBLE") for index, name in enumerate(_WHOLE_SQL)},
    "FLOAT": ("DOUBLE",),
}


class Evolution:
    """The conversion of an operator's restored state to state of its current classes.

    Args:
        written: what the snapshot says of its states.
        moved: names of classes -> names they have now.
        operator_uid: who owns the state, for errors.

    Raises:
        SnapshotMismatch: a state cannot become one of now.
    """

    def __init__(self, written: Iterable[StateSummary], moved: Mapping[str, str], operator_uid: str) -> None:
        self._operator_uid = operator_uid
        self._changes: dict[str, _Change] = {}
        renewed = []
        for summary in written:
            classes = {}
            for name, schema in summary.classes.items():
                judged, cls = judge_class(schema, moved)
                if judged.verdict is Verdict.REFUSE:
                    declared = "classes that do not take it"
                    raise SnapshotMismatch(
                        summary.name, operator_uid, _describe_schema(schema), declared, judged.reason
                    )
                assert cls is not None, "only what is refused has no class"
                if judged.verdict is Verdict.MIGRATE:
                    self._changes[name] = _Change(schema, cls)
                current = schema_of(cls)
                if current is not None:
                    classes[current.name] = current
            values = (moved.get(name, name) for name in summary.parsed_schema.get("values", ()))
            renewed.append(summary.with_classes(classes, values) if summary.schema else summary)
        states = merge_summaries(renewed)
        self.keyed = {summary.name: summary for summary in states if summary.is_keyed}
        """State by key as it is now, by name."""
        self.lists = {summary.name: summary for summary in states if not summary.is_keyed}
        """State of the operator as it is now, by name."""

    @property
    def is_needed(self) -> bool:
        """Return whether anything was written in another form."""
        return bool(self._changes)

    def loads(self, data: bytes | memoryview) -> Any:
        """Unpickle data as objects of the current classes."""
        return self.renewed(loads_leniently(data, self._changes))

    def part(self, data: bytes) -> bytes:
        """Return a key group with objects of the current classes."""
        return self.encoded(decode_group(data, self._operator_uid, self._stood_for))

    def encoded(self, content: Content) -> bytes:
        """Encode the content of a key group, replacing stand-ins by objects of the current classes."""
        tables = {
            name: (kind, [(position, self._key(name, space), self._key(name, key), self.renewed(value))
                          for position, space, key, value in rows])
            for name, (kind, rows) in content["tables"].items()
        }  # fmt: skip
        timers = {
            name: [
                (position, self._key(name, space), self._key(name, key), time) for position, space, key, time in rows
            ]
            for name, rows in content["timers"].items()
        }
        return encode_group({"tables": tables, "timers": timers}, "the migration of state")

    def _stood_for(self, data: bytes | memoryview) -> Any:
        return loads_leniently(data, self._changes)

    @property
    def stood_for(self) -> Callable[[Any], Any]:
        """Reads pickles with stand-ins for objects in another form."""
        return self._stood_for

    def _key(self, state: str, key: UserKey) -> UserKey:
        """Return a key or namespace; its classes may not change, since its key group would change with them."""
        if any(isinstance(part, UnknownObject) for part in _deep(key)):
            reason = "keys and windows are found by their class and fields, which cannot change; key by plain values"
            raise SnapshotMismatch(state, self._operator_uid, f"the key {key!r:.100}", "another class", reason)
        return key

    def renewed(self, value: UserValue, met: dict[int, Any] | None = None) -> UserValue:
        """Return the value with current objects in place of stand-ins, at any depth.

        Args:
            met: id of an object -> what it became, since it may be met again.
        """
        kind = value.__class__
        if kind in _LEAVES or isinstance(value, (type, FunctionType, ModuleType)):
            return value
        met = {} if met is None else met
        if id(value) in met:
            return met[id(value)]
        if isinstance(value, UnknownObject):
            met[id(value)] = new = self._object(value, met)
            return new
        met[id(value)] = value
        if kind is list:
            value[:] = [self.renewed(part, met) for part in value]
        elif kind is dict:
            items = [(self.renewed(key, met), self.renewed(part, met)) for key, part in value.items()]
            value.clear()
            value.update(items)
        elif kind in (set, frozenset):
            met[id(value)] = kind(self.renewed(part, met) for part in value)
        elif isinstance(value, tuple):
            parts = [self.renewed(part, met) for part in value]
            if any(new is not old for new, old in zip(parts, value, strict=True)):
                met[id(value)] = tuple(parts) if kind is tuple else kind._make(parts)
        else:
            for name, part in _attributes(value):
                new = self.renewed(part, met)
                if new is not part:
                    object.__setattr__(value, name, new)
        return met[id(value)]

    def _object(self, value: UnknownObject, met: dict[int, Any]) -> Any:
        change = self._changes.get(value.class_of)
        if change is None:
            reason = "its class is not there; name the class it is now in rayflink.state.moved-classes"
            raise SnapshotMismatch("(a value)", self._operator_uid, f"a {value.class_of}", "a class of now", reason)
        fields = {name: self.renewed(part, met) for name, part in written_fields(value, change.written.names).items()}
        hook = getattr(change.cls, HOOK, None)
        return hook(fields) if callable(hook) else _new_object(change.cls, fields)


def written_fields(value: UnknownObject, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a stand-in by name; fields known by position only are named f0, f1 and so on."""
    named = value.fields if isinstance(value.fields, dict) else {}
    positional = value.fields if isinstance(value.fields, (list, tuple)) else value.arguments
    left = iter(names)
    return {**{next(left, f"f{index}"): part for index, part in enumerate(positional)}, **named}


def _new_object(cls: type, fields: Mapping[str, Any]) -> Any:
    """Create an object of a class with these fields, where it has them, and defaults for the others."""
    if is_named_tuple(cls):
        names: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]
        return cls(**{name: fields[name] for name in names if name in fields})
    result: Any = object.__new__(cls)
    if not dataclasses.is_dataclass(cls):
        result.__dict__.update(fields)
        return result
    for field in dataclasses.fields(cls):
        object.__setattr__(
            result, field.name, fields[field.name] if field.name in fields else _default(cls, field.name)
        )
    return result


def _default(cls: type, name: str) -> Any:
    """Return the default of a field; `_MISSING` where it has none."""
    if is_named_tuple(cls):
        return getattr(cls, "_field_defaults", {}).get(name, _MISSING)
    for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        if field.name == name:
            if field.default is not dataclasses.MISSING:
                return field.default
            if field.default_factory is not dataclasses.MISSING:
                return field.default_factory()
    return _MISSING


def _attributes(value: object) -> list[tuple[str, Any]]:
    """Return the attributes of an object: from its dict, or from the slots of a dataclass."""
    if dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value))
        return [(name, getattr(value, name)) for name in names if hasattr(value, name)]
    return list(getattr(value, "__dict__", {}).items())


def _deep(key: UserKey) -> Iterator[UserKey]:
    yield key
    if isinstance(key, tuple):
        for part in key:
            yield from _deep(part)


def _describe_schema(schema: ClassSchema) -> str:
    fields = ", ".join(f"{name}: {kind}" if kind else name for name, kind in schema.fields)
    return f"{schema.name}({fields})"


__all__ = [
    "Evolution", "HOOK", "Judgement", "Verdict", "fitting", "judge_class", "judge_type", "judge_types",
    "moved_classes", "written_fields",
]  # fmt: skip
