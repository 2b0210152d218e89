"""Turns docstrings into what the site's reader expects: examples fenced, one-line sections as sections.

Classes show the public methods that they have from bases which have no place of their own: those that are no public
name. Second names of methods and classes, members of enumerations and functions made from a name and a text are shown,
too, although they have no docstring in the code.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

NAMES = Path(__file__).resolve().parents[2] / "tests" / "golden" / "public_api.txt"
"""The list of public names."""
_SECTION = re.compile(r"^(Raises|Returns|Yields|Args|Source): (?=\S)", re.M)
_TOGETHER = re.compile(r"^( +)([a-z]\w*(?:, [a-z]\w*)+): (.+(?:\n\1 +.+)*)$", re.M)
ENUMS = ("Enum", "IntEnum", "Flag", "IntFlag")
FROM_TEXTS = {
    "Property": "{1}",
    "Function": "{1}",
    "Part": "{1}",
    "Length": "The number of times one {0}, as an interval.",
}
"""Classes of rayflink.table.dsl, whose arguments describe the functions that they make."""
_TITLES = ("Args:", "Raises:", "Returns:", "Yields:")


def readable(text: str) -> str:
    """The docstring in Markdown that Google's style understands.

    >>> readable("A number. Raises nothing.\\n\\nRaises: ValueError: never.")
    'A number. Raises nothing.\\n\\nRaises:\\n    ValueError: never.'
    """
    return _fenced(_apart(_SECTION.sub(_opened, _TOGETHER.sub(_parted, text))))


def _parted(shared: re.Match[str]) -> str:
    """What is said of two arguments together is said of each."""
    return "\n".join(f"{shared[1]}{name.strip()}: {shared[3]}" for name in shared[2].split(","))


def _opened(section: re.Match[str]) -> str:
    """A section that begins on the line of its title gets lines of its own; a source is a plain paragraph."""
    return "\n*Source:* " if section[1] == "Source" else f"{section[1]}:\n    "


def _apart(text: str) -> str:
    """An empty line in front of each section, and the lines that go on with its first one indented as it is."""
    lines: list[str] = []
    opened = False
    for line in text.splitlines():
        if line in _TITLES:
            if lines and lines[-1]:
                lines.append("")
            opened = True
        elif opened and line and not line.startswith(" ") and not line.startswith(("*Source:*", ">>>")):
            if lines[-1]:  # the section began on the line of its title and goes on here
                line = f"        {line}"
            else:
                opened = False
        elif line.startswith(("*Source:*", ">>>")):
            opened = False
            if lines and lines[-1] and not lines[-1].startswith((">>>", "...")) and not line.startswith(">>>"):
                lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _fenced(text: str) -> str:
    """Interactive examples as blocks of code: from `>>>` to the next empty line that no other example follows."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if not inside and line.startswith(">>>"):
            if lines and lines[-1]:
                lines.append("")
            lines.append("```pycon")
            inside = True
        elif inside and not line:
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


class ReadableDocstrings(griffe.Extension):
    """Applied to every docstring that is loaded."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Give each public class what its bases have that are not described themselves."""
        described = set(_described(pkg))
        for owner in _classes(pkg):
            _describe_members(owner, described)
        for owner in _classes(pkg):
            for base in owner.mro():
                if base.canonical_path not in described:
                    _take_over(owner, base)


def _described(pkg: griffe.Module) -> Iterator[str]:
    """The paths at which the public names are defined."""
    for line in NAMES.read_text(encoding="utf-8").splitlines():
        path = line.partition("(")[0].removeprefix(f"{pkg.name}.")
        try:
            yield pkg[path].canonical_path
        except (KeyError, griffe.AliasResolutionError):  # made when the module runs
            yield f"{pkg.name}.{path}"


def _classes(parent: griffe.Module | griffe.Class) -> Iterator[griffe.Class]:
    """The public classes below, at any depth."""
    for member in list(parent.members.values()):
        if member.is_alias or not (member.is_module or member.is_class) or member.name.startswith("_"):
            continue
        if isinstance(member, griffe.Class):
            yield member
        yield from _classes(member)


def _take_over(owner: griffe.Class, base: griffe.Class) -> None:
    for name, member in base.members.items():
        if not name.startswith("_") and not member.is_alias and name not in owner.members:
            owner.set_member(name, copy.copy(member))


def _describe_members(owner: griffe.Class, described: set[str]) -> None:
    """Give members without a docstring one, from the value that the code gives them."""
    if any(str(base).rpartition(".")[2] in ENUMS for base in owner.bases):
        names = [f"`{name}`" for name, member in owner.members.items() if member.is_attribute and name[0] != "_"]
        owner.docstring = griffe.Docstring(
            "\n\n".join([owner.docstring.value if owner.docstring else "", f"Members: {', '.join(names)}."]).strip(),
            parent=owner,
        )
        return
    for name, member in list(owner.members.items()):
        if name.startswith("_") or member.is_alias or not isinstance(member, griffe.Attribute) or member.docstring:
            continue
        if isinstance(member.value, griffe.ExprCall) and str(member.value.function) in FROM_TEXTS:
            given = [ast.literal_eval(str(one)) for one in member.value.arguments]
            text = FROM_TEXTS[str(member.value.function)].format(*given)
            member.docstring = griffe.Docstring(text, parent=member)
        elif isinstance(member.value, griffe.ExprName) and member.annotation is None:
            _describe_second_name(owner, member, described)


def _describe_second_name(owner: griffe.Class, member: griffe.Attribute, described: set[str]) -> None:
    """Show a class in the place of its second name where it is no public name; else say what the name stands for."""
    assert isinstance(member.value, griffe.ExprName)
    try:
        target = member.modules_collection[member.value.canonical_path]
    except KeyError:  # of no module that is read
        return
    if isinstance(target, griffe.Class) and target.canonical_path not in described:
        shown = copy.copy(target)
        shown.name = member.name
        owner.set_member(member.name, shown)
    else:
        member.docstring = griffe.Docstring(f"The same as `{member.value.name}`.", parent=member)
