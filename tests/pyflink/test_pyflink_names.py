"""PyFlink's public names and signatures against rayflink's.

PyFlink's side is read as syntax trees from its wheel, which is downloaded and unzipped, never installed or run.
rayflink's side is imported. The rule: what a program may name in PyFlink it may name here, a call that PyFlink takes is
taken, by place and by name, with the same defaults and with values of the types that PyFlink annotates, and returns
what it says (`pyflink_types.py`); objects have the attributes, properties and methods that they have there, also those
that their class inherits; and a class that a program derives from can be derived from in the same way.
What is not so stands in `golden/pyflink_differences.txt`, each line with its reason; "java-only" and "internal" stay.

`python -m tests.pyflink.test_pyflink_names DIRECTORY`, with the directory of an unzipped wheel, prints what differs.
`RAYFLINK_WRITE_GOLDEN=1 pytest ...` writes the list anew; new lines get the reason `?`, which the test refuses.
`tests/pyflink/pyflink_wheels.py` says where downloads are kept.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import os
import sys
import textwrap
import types
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.pyflink import pyflink_types
from tests.pyflink.pyflink_names import (
    ENUMS,
    Name,
    Parameter,
    attributes_set,
    inherited_names,
    names_of_module,
    pyflink_names,
)
from tests.pyflink.pyflink_types import Lookup, not_returned, not_taken, types_of
from tests.pyflink.pyflink_wheels import VERSIONS, unzipped_wheel

GOLDEN = Path(__file__).parents[1] / "golden" / "pyflink_differences.txt"
ABSENT = object()


@dataclass(frozen=True)
class Finding:
    """How a name fares: present, missing or differs, and in what."""

    name: Name
    status: str
    detail: str = ""

    @property
    def is_class_alone(self) -> bool:
        """Whether nothing is wrong with what inherits from it: it is there, or is a class that differs by itself."""
        return self.status == "present" or (self.name.kind == "class" and "is no " not in self.detail)


# rayflink's side


Homes = Mapping[str, Sequence[str]]
"""Top-level name of PyFlink -> other modules, without the package, where it may be found."""


def compared(names: Sequence[Name], homes: Homes, package: str = "rayflink") -> list[Finding]:
    """How each name fares in `package`; what a missing class holds is left out.

    A name whose module is missing is looked for in its homes, so that its methods are compared all the same.
    """
    found: list[Finding] = []
    missing: set[str] = set()
    lookup = _lookup(names, homes, package)
    for name in names:
        if not _has_module(f"{package}.{name.module}") and name.module not in missing:
            missing.add(name.module)
            found.append(Finding(Name(name.module, "*", "module"), "missing", "no such module"))
        above, _, last = name.full.rpartition(".")
        if "." in name.path and above in missing:
            missing.add(name.full)
            continue
        owner = _owner(name, homes, package)
        finding = Finding(name, "missing") if owner is None else compare_value(name, owner, last, lookup)
        if finding.status == "missing":
            missing.add(name.full)
        found.append(finding)
    wrong = {finding.name.full for finding in found if finding.status == "missing" or not finding.is_class_alone}
    for name in inherited_names(list(names)):
        last = name.path.rpartition(".")[2]
        if wrong & {name.full.rpartition(".")[0], name.defined_by, f"{name.defined_by}.{last}"}:
            continue
        owner = None if name.takes_java else _owner(name, homes, package)
        if owner is not None and (finding := compare_value(name, owner, last, lookup)).status != "present":
            found.append(replace(finding, detail=f"{finding.detail} (defined by {name.defined_by})".strip()))
    return found


def _lookup(names: Sequence[Name], homes: Homes, package: str) -> Lookup:
    by_name: dict[str, list[Name]] = {}
    for name in names:
        if name.kind == "class":
            by_name.setdefault(name.path.rpartition(".")[2], []).append(name)

    @cache
    def classes(word: str) -> tuple[type, ...]:
        owners = [(_owner(name, homes, package), name) for name in by_name.get(word, ())]
        values = [getattr(owner, word) for owner, _ in owners if owner is not None and _has(owner, word)]
        return tuple(value for value in values if inspect.isclass(value))

    return classes


def homes_of(names: Sequence[Name]) -> dict[str, list[str]]:
    """Where PyFlink itself passes a name on: "datastream.window.Trigger" -> ["datastream"]."""
    homes: dict[str, list[str]] = {}
    exports = [name for name in names if name.kind == "export"]
    for name in names:
        if name.kind != "export" and "." not in name.path:
            homes[name.full] = [
                e.module for e in exports if e.path == name.path and name.module.startswith(f"{e.module}.")
            ]
    return homes


def _has(owner: Any, name: str) -> bool:
    """Whether a module or class has a name; one that only says what to use instead has not."""
    try:
        return hasattr(owner, name)
    except ImportError:
        return False


def _owner(name: Name, homes: Homes, package: str) -> Any:
    """The module or class that has the name's last part, or should; None where there is neither."""
    first, *rest = name.path.split(".")
    for module in (name.module, *homes.get(f"{name.module}.{first}", ())):
        owner: Any = import_module(f"{package}.{module}") if _has_module(f"{package}.{module}") else None
        if _has(owner, first):
            for part in [first, *rest][:-1]:
                owner = getattr(owner, part)
            return owner
    return None


def _nothing(name: str) -> Sequence[type]:
    return ()


def compare_value(name: Name, owner: Any, last: str, lookup: Lookup = _nothing) -> Finding:
    """How a name fares as attribute `last` of `owner`, a class or module."""
    value = getattr(owner, last) if _has(owner, last) else ABSENT
    if value is ABSENT:
        if name.kind == "attribute" and last in _instance_attributes(owner):
            return Finding(name, "present")
        return Finding(name, "missing")
    problem = _class_problem(name, value) if name.kind == "class" else ""
    if name.kind == "property" and callable(value):
        return Finding(name, "differs", "a property there, a method here")
    if name.kind == "attribute" and inspect.isfunction(value):
        return Finding(name, "differs", "an attribute there, a method here")
    if name.kind == "property" and isinstance(getter := getattr(value, "fget", None), types.FunctionType):
        problem = _wrong_result(name, getter, lookup)
    if name.parameters is None or (name.kind == "class" and name.takes_java):
        return Finding(name, "differs", problem) if problem else Finding(name, "present")
    if not callable(value):
        return Finding(name, "differs", "a method there, not callable here")
    problem = "; ".join(filter(None, (problem, _problem(name, owner, last, value, lookup))))
    return Finding(name, "differs", problem) if problem else Finding(name, "present")


def _class_problem(name: Name, value: Any) -> str:
    """Why a class that derives from this one, or names it in a type hint, would fail."""
    if not inspect.isclass(value):
        return "is no class here"
    problems = []
    if "Generic" in name.bases and not hasattr(value, "__class_getitem__"):
        problems.append(f"{value.__name__}[...] cannot be written")
    lacking = {*name.bases} - {base.__name__ for base in value.__mro__} - {"object", "ABC", "Generic", *ENUMS}
    lacking = {base for base in lacking if not base.startswith("Java")}
    if lacking:
        problems.append(f"is no {', '.join(sorted(lacking))}")
    more = set(getattr(value, "__abstractmethods__", ())) - name.wanted
    if name.wanted and more:
        problems.append(f"those who derive from it must write {', '.join(sorted(more))} too")
    return "; ".join(problems)


def _wrong_result(name: Name, function: Any, lookup: Lookup) -> str:
    """Why what a function returns is not what PyFlink says; "" where it is."""
    annotation = getattr(function, "__annotations__", {}).get("return", inspect.Parameter.empty)
    others = not_returned(name.returns, types_of(annotation, function), lookup)
    return f"returns {annotation}, and there {name.returns}" if others else ""


def _problem(name: Name, owner: Any, last: str, value: Any, lookup: Lookup) -> str:
    """Why a call that PyFlink takes would not be taken; "" where it is."""
    assert name.parameters is not None
    static = inspect.getattr_static(owner, last)
    if name.kind in {"staticmethod", "classmethod"} and not isinstance(static, (staticmethod, classmethod)):
        return f"a {name.kind} there, called on an object here"
    try:
        taken = list(inspect.signature(value).parameters.values())
    except ValueError:
        return "has no signature that can be read"
    if name.kind == "method" and not isinstance(static, (staticmethod, classmethod)):
        taken = taken[1:]
    function = inspect.unwrap(getattr(value, "__func__", value))
    if inspect.isclass(value):
        function = value.__init__
    kinds = {p.name: types_of(p.annotation, function) for p in taken}
    problems = list(_mismatches(name.parameters, taken, not name.overridden, kinds, lookup))
    if name.kind != "class" and (wrong := _wrong_result(name, function, lookup)):
        problems.append(wrong)
    there = ", ".join(map(str, name.parameters))
    here = ", ".join(str(p.replace(annotation=inspect.Parameter.empty)) for p in taken)
    return f"{'; '.join(problems)}: ({there}) there, ({here}) here" if problems else ""


def _mismatches(
    wanted: Sequence[Parameter],
    have: Sequence[inspect.Parameter],
    names_matter: bool,
    types_here: Mapping[str, set[Any]],
    lookup: Lookup,
) -> Iterator[str]:
    by_place = [p for p in have if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = {p.name: p for p in have if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    any_place = any(p.kind == p.VAR_POSITIONAL for p in have)
    any_name = any(p.kind == p.VAR_KEYWORD for p in have)
    used = set()
    for place, parameter in enumerate(wanted):
        if parameter.stars:
            if not (any_place if parameter.stars == "*" else any_name):
                yield f"{parameter} is not taken"
            continue
        at = by_name.get(parameter.name)
        if not parameter.keyword_only:
            at = by_place[place] if place < len(by_place) else None
        if at is None:
            if not (any_name if parameter.keyword_only else any_place and (any_name or not names_matter)):
                yield f"{parameter.name} is not taken"
            continue
        used.add(at.name)
        if at.name != parameter.name and names_matter and not any_name:
            yield f"{parameter.name} is called {at.name}"
        elif at.kind == at.POSITIONAL_ONLY and names_matter and not any_name:
            yield f"{parameter.name} is taken by place alone"
        if parameter.default and at.default is at.empty:
            yield f"{parameter.name} has no default"
        elif parameter.default and _is_other_literal(parameter.default, at.default):
            yield f"{parameter.name} is {at.default!r} by default, not {parameter.default}"
        for kind in not_taken(parameter.type, types_here[at.name], lookup) if names_matter else ():
            yield f"{parameter.name} is {at.annotation}, and not {kind}"
    for extra in have:
        if extra.name not in used and extra.default is extra.empty and extra.kind not in (2, 4):
            yield f"{extra.name} is wanted"


def _is_other_literal(text: str, default: Any) -> bool:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return isinstance(default, Enum) and text.rpartition(".")[2] != default.name
    if value is None or default is None:
        return value is not default
    return isinstance(default, (str, int, float, bool)) and value != default


def _instance_attributes(owner: Any) -> set[str]:
    """What objects of a class bear: annotated, in slots, or assigned in one of its methods."""
    if not inspect.isclass(owner):
        return set()
    names: set[str] = set()
    for cls in owner.__mro__[:-1]:
        names |= {*vars(cls).get("__annotations__", ()), *vars(cls).get("__slots__", ())}
        try:
            names |= attributes_set(ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0])
        except (OSError, TypeError):
            continue  # a class without source bears what it declares
    return names


@cache
def _has_module(name: str) -> bool:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if not name.startswith(str(error.name)):
            raise
        return False
    return True


# the tests


@pytest.fixture(scope="session")
def wheels() -> list[Path]:
    """Unzipped wheels of PyFlink, one a version."""
    return [unzipped_wheel(version) for version in VERSIONS]


@cache
def differences(*roots: Path) -> dict[str, str]:
    """What is not as in PyFlink, in one version at least: name -> how."""
    found: dict[str, str] = {}
    for root in roots:
        names = pyflink_names(root)
        wanted = [name for name in names if name.kind == "class" or not name.takes_java]
        for f in compared(wanted, homes_of(names)):
            if f.status != "present":
                found.setdefault(f.name.full, f"{f.status} {f.detail}".strip())
    return found


def listed_differences() -> dict[str, str]:
    """The golden list: name -> reason."""
    lines = GOLDEN.read_text(encoding="utf-8").splitlines() if GOLDEN.exists() else []
    return dict(line.split("  ", 1) for line in lines if line and not line.startswith("#"))


@pytest.mark.slow
def test_every_name_of_pyflink_is_there_or_listed_with_a_reason(wheels):
    found = differences(*wheels)
    listed = listed_differences()
    if os.environ.get("RAYFLINK_WRITE_GOLDEN"):
        listed = {name: listed.get(name, "?") for name in sorted(found)}
        GOLDEN.write_text("".join(f"{name}  {reason}\n" for name, reason in listed.items()), encoding="utf-8")
    assert {name: how for name, how in found.items() if name not in listed} == {}


@pytest.mark.slow
def test_no_listed_difference_has_gone(wheels):
    assert sorted(listed_differences().keys() - differences(*wheels)) == []


def test_every_listed_difference_has_a_reason():
    assert [name for name, reason in listed_differences().items() if len(reason) < 10] == []


SAMPLE = """
from enum import Enum
from typing import TypeVar
T = TypeVar('T')
LIMIT = 3
class Kind(Enum):
    A = 0
class Thing(object):
    def __init__(self, size: int, j_thing=None):
        self.size = size
    @staticmethod
    def of(size: int, offset: int = 0) -> 'Thing': ...
    @property
    def width(self): ...
    def grow(self, by: int, *others, **named): ...
    def get_java_thing(self): ...
    def _hidden(self): ...
"""


def test_names_are_read_with_kind_and_parameters():
    read = {
        n.path: f"{n.kind}({', '.join(map(str, n.parameters or ()))})" for n in names_of_module("m", ast.parse(SAMPLE))
    }
    assert read == {
        "LIMIT": "constant()",
        "Kind": "class()",
        "Kind.A": "member()",
        "Thing": "class(size, j_thing=None)",
        "Thing.of": "staticmethod(size, offset=0)",
        "Thing.width": "property()",
        "Thing.grow": "method(by, *others, **named)",
        "Thing.get_java_thing": "method()",
        "Thing.size": "attribute()",
    }


def _annotated(parameters):
    module: dict[str, Any] = {}
    exec(f"from __future__ import annotations\ndef of({parameters}): ...", module)
    return module["of"]


@pytest.mark.parametrize(
    ("here", "problem"),
    [
        (lambda size, offset=0: 0, ""),
        (lambda size, offset=0, more=None: 0, ""),
        (lambda *a, **k: 0, ""),
        (lambda length, offset=0: 0, "size is called length"),
        (lambda size, offset: 0, "offset has no default"),
        (lambda size, offset=1: 0, "offset is 1 by default, not 0"),
        (lambda size, offset=None: 0, "offset is None by default, not 0"),
        (lambda size: 0, "offset is not taken"),
        (_annotated("size: str, offset: int = 0"), "size is str, and not int"),
        (_annotated("size: float | None, offset: int = 0"), ""),
        (lambda size, offset=0, *, zone: 0, "zone is wanted"),
        (lambda size, /, offset=0: 0, "size is taken by place alone"),
        (lambda size, *, offset=0: 0, "offset is not taken"),
    ],
)
def test_a_call_that_pyflink_takes_must_be_taken(here, problem):
    owner = type("Thing", (), {"of": staticmethod(here)})
    name = next(n for n in names_of_module("m", ast.parse(SAMPLE)) if n.path == "Thing.of")
    assert compare_value(name, owner, "of").detail.partition(":")[0] == problem


def test_annotations_are_compared_as_their_examples_say():
    assert doctest.testmod(pyflink_types).failed == 0


def test_what_a_class_inherits_and_its_objects_bear_is_compared():
    there = "class Base:\n def width(self) -> int: ...\n def grow(self): ...\nclass Thing(Base):\n" \
        " def __init__(self):\n  self.size = 1\n"  # fmt: skip
    names = names_of_module("m", ast.parse(there))

    class Thing:
        def width(self) -> str:
            return ""

        def size(self) -> int:
            return 1

    def problem(path):
        name = next(name for name in (*inherited_names(names), *names) if name.path == path)
        finding = compare_value(name, Thing, path.rpartition(".")[2])
        return finding.detail.partition(":")[0] or finding.status

    assert {path: problem(path) for path in ("Thing.width", "Thing.grow", "Thing.size")} == {
        "Thing.width": "returns str, and there int", "Thing.grow": "missing",
        "Thing.size": "an attribute there, a method here",
    }  # fmt: skip


DERIVED = """
class Base(ABC, Generic[T]):
    @abstractmethod
    def work(self, value): ...
class Thing(Base[T]): ...
"""


@pytest.mark.parametrize(
    ("path", "here", "problem"),
    [
        ("Base", "class Base(ABC, Generic[T]):\n @abstractmethod\n def work(self, record): ...", ""),
        ("Base", "class Base(ABC):\n @abstractmethod\n def work(self, value): ...", "Base[...] cannot be written"),
        (
            "Base",
            "class Base(ABC, Generic[T]):\n work = abstractmethod(lambda s: 0)\n open = abstractmethod(lambda s: 0)",
            "those who derive from it must write open too",
        ),
        ("Thing", "class Thing(Generic[T]): ...", "is no Base"),
        ("Thing", "Thing = 3", "is no class here"),
    ],
)
def test_a_class_can_be_derived_from_as_in_pyflink(path, here, problem):
    module: dict[str, Any] = {}
    exec("from abc import *\nfrom typing import *\nT = TypeVar('T')\n" + here, module)
    name = next(n for n in names_of_module("m", ast.parse(DERIVED)) if n.path == path)
    assert compare_value(name, SimpleNamespace(**module), path).detail == problem


def main() -> None:
    """Print what differs from the unzipped wheel named on the command line."""
    names = pyflink_names(Path(sys.argv[1]))
    findings = compared(names, homes_of(names))
    for finding in findings:
        if finding.status != "present":
            print(f"{finding.name.full}  {finding.status} {finding.detail}".rstrip())
    print(Counter(finding.status for finding in findings), file=sys.stderr)


if __name__ == "__main__":
    main()
