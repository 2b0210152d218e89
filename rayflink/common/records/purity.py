"""A proof that a user function holds no mutable object from one call to the next.

Such a function cannot hand out the same list twice and change it in between, so its results need no watching. The proof
reads the function's code and everything it can reach: closure, defaults, globals, the instance of a bound method. It is
conservative: what it does not know it does not trust. Attributes of records are taken to belong to the record.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from rayflink.user_types import UserValue

from .immutability import is_immutable

_FORBIDDEN_BUILTINS = frozenset(
    "globals locals vars eval exec compile __import__ getattr setattr delattr next super breakpoint open input".split()
)
_TRUSTED_MODULES = frozenset(
    "ast base64 binascii builtins calendar collections colorsys datetime decimal fractions hashlib html ipaddress json "
    "itertools math operator posixpath re statistics string struct textwrap time unicodedata urllib.parse uuid zlib "
    "_datetime _json _operator _collections _decimal _struct json.decoder json.encoder".split()
)
_PASSING_TYPES = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
_BUILTIN_CALLS = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)


def holds_nothing(function: Callable[..., Any]) -> bool:
    """Return True when `function` provably keeps no mutable object between calls, so that each result is its own."""
    return _Proof().harmless(function, may_store=True)


class _Proof:
    def __init__(self) -> None:
        self._seen: set[int] = set()

    def harmless(self, value: UserValue, may_store: bool = False) -> bool:
        """Return whether code that reaches `value` gets no mutable object from it that outlives the call.

        Args:
            may_store: attributes that the function itself sets are those of records, or are looked at elsewhere.
        """
        if isinstance(value, types.FunctionType):
            return (may_store or not _stores_anywhere(value)) and self._function(value)
        if isinstance(value, types.MethodType):
            return self._bound(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, types.ModuleType):
            return value.__name__ in _TRUSTED_MODULES
        if isinstance(value, _BUILTIN_CALLS):
            return self._builtin(value)
        if isinstance(value, functools.partial):
            return all(map(self.harmless, (value.func, *value.args, *value.keywords.values())))
        if isinstance(value, _PASSING_TYPES):
            return True
        if type(value) in (tuple, frozenset):
            return all(map(self.harmless, value))
        return is_immutable(type(value))

    def _builtin(self, value: UserValue) -> bool:
        if value.__name__ in _FORBIDDEN_BUILTINS:
            return False
        owner = getattr(value, "__self__", None)
        if owner is None or isinstance(owner, types.ModuleType):
            definer = value if getattr(value, "__module__", None) else getattr(value, "__objclass__", None)
            return getattr(definer, "__module__", "") in _TRUSTED_MODULES
        return self.harmless(owner)

    def _function(self, function: types.FunctionType) -> bool:
        if function.__module__ in _TRUSTED_MODULES:
            return True
        if id(function) in self._seen:
            return True
        self._seen.add(id(function))
        references = list(function.__defaults__ or ()) + list((function.__kwdefaults__ or {}).values())
        try:
            references += [cell.cell_contents for cell in function.__closure__ or ()]
        except ValueError:  # a cell not filled yet: unknown
            return False
        references += vars(function).values()
        return all(map(self.harmless, references)) and self._code(function.__code__, function)

    def _code(self, code: types.CodeType, function: types.FunctionType) -> bool:
        read = _read(code, function.__code__.co_freevars)
        if read is None:
            return False
        names, stores_attribute = read
        for name in names:
            value = function.__globals__.get(name, getattr(builtins, name, _UNKNOWN))
            if stores_attribute and isinstance(value, (types.FunctionType, type, types.ModuleType)):
                return False
            if not self.harmless(value):
                return False
        return all(self._code(nested, function) for nested in _nested(code))

    def _bound(self, method: types.MethodType) -> bool:
        owner = method.__self__
        if isinstance(owner, type) or not isinstance(method.__func__, types.FunctionType):
            return False
        if not hasattr(owner, "__dict__"):
            return False
        is_new = id(owner) not in self._seen  # it may keep a method of its own
        self._seen.add(id(owner))
        return (
            (not is_new or all(map(self.harmless, vars(owner).values())))
            and self._class(type(owner))
            and self.harmless(method.__func__, may_store=True)
            and not any(_stores_attribute(code) for code in self._reached(method.__func__, type(owner)))
        )

    def _reached(self, function: types.FunctionType, owner: type) -> Iterator[types.CodeType]:
        """Return the code of `function`, and of the owner's methods and functions that it names, directly or not."""
        todo, done = [function], set()
        while todo:
            callee = todo.pop()
            code = callee.__code__
            if code in done:
                continue
            done.add(code)
            for part in (code, *_all_nested(code)):
                yield part
                for name in part.co_names:
                    target = inspect.getattr_static(owner, name, None)
                    if isinstance(target, staticmethod | classmethod):
                        target = target.__func__
                    todo += [it for it in (target, callee.__globals__.get(name)) if isinstance(it, types.FunctionType)]
                    if isinstance(target, property) and isinstance(target.fget, types.FunctionType):
                        todo.append(target.fget)

    def _class(self, kind: type) -> bool:
        if kind.__module__ in _TRUSTED_MODULES or kind.__module__.startswith("rayflink.") or issubclass(kind, Enum):
            return True
        if id(kind) in self._seen:
            return True
        self._seen.add(id(kind))
        if type(kind).__module__ not in ("builtins", "abc"):
            return False
        if not all(map(self._field, getattr(kind, "__dataclass_fields__", {}).values())):
            return False
        for base in kind.__mro__:
            if base.__module__ in _TRUSTED_MODULES or base.__module__ in ("abc", "typing"):
                continue
            if base.__module__.startswith("rayflink."):
                continue
            if not all(self._member(name, value) for name, value in vars(base).items()):
                return False
        return True

    def _field(self, field: dataclasses.Field[Any]) -> bool:
        sources = (field.default, field.default_factory)
        return all(source is dataclasses.MISSING or self.harmless(source) for source in sources)

    def _member(self, name: str, value: object) -> bool:
        if name == "__init__" and getattr(getattr(value, "__code__", None), "co_filename", "") == "<string>":
            return True  # made by dataclass: sets the fields
        if name in _CLASS_MACHINERY or isinstance(value, (types.GetSetDescriptorType, types.MemberDescriptorType)):
            return True
        if isinstance(value, property):
            return all(map(self.harmless, filter(None, (value.fget, value.fset))))
        if isinstance(value, (staticmethod, classmethod)):
            return self.harmless(value.__func__)
        if name in ("open", "close"):  # called outside the records; what they leave on the instance is looked at
            return isinstance(value, types.FunctionType)
        return self.harmless(value, may_store=True)


_UNKNOWN: list[Any] = []
_CLASS_MACHINERY = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __annotations__ __dataclass_fields__ __dataclass_params__ "
    "__abstractmethods__ _abc_impl __slots__ __match_args__ __parameters__ __orig_bases__ __repr__ __eq__ "
    "__hash__ __qualname__ __static_attributes__ __firstlineno__ _fields _field_defaults __getnewargs__ "
    "__setattr__ __delattr__ __lt__ __le__ __gt__ __ge__ __replace__ __getstate__ __setstate__ _make _replace "
    "_asdict __annotate__ __annotate_func__ __annotations_cache__ __slotnames__".split()
)


@functools.lru_cache(maxsize=4096)
def _read(code: types.CodeType, closed_over: tuple[str, ...]) -> tuple[frozenset[str], bool] | None:
    """Return the globals that code reads, and whether it sets attributes; None where it is not harmless."""
    names: set[str] = set()
    stores_attribute = False
    for step in dis.get_instructions(code):
        name = str(step.argval)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(name)
        elif step.opname == "STORE_ATTR":
            stores_attribute = True
        elif step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME"):
            return None
        elif step.opname == "STORE_DEREF" and name in closed_over:
            return None
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and name.startswith("__"):
            return None
    return frozenset(names), stores_attribute


def _nested(code: types.CodeType) -> list[types.CodeType]:
    return [part for part in code.co_consts if isinstance(part, types.CodeType)]


def _all_nested(code: types.CodeType) -> Iterator[types.CodeType]:
    for part in _nested(code):
        yield part
        yield from _all_nested(part)


@functools.lru_cache(maxsize=4096)
def _stores_attribute(code: types.CodeType) -> bool:
    return any(step.opname in ("STORE_ATTR", "DELETE_ATTR") for step in dis.get_instructions(code))


def _stores_anywhere(function: types.FunctionType) -> bool:
    return any(map(_stores_attribute, (function.__code__, *_all_nested(function.__code__))))
