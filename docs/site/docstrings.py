"""Turns docstrings into what the site's reader expects: examples fenced, one-line sections as sections.

Classes show the public methods that they have from bases which have no place of their own: those that are no public
name.
"""

from __future__ import annotations

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
        described = {line.strip().rpartition(".")[2] for line in NAMES.read_text(encoding="utf-8").splitlines()}
        for owner in _classes(pkg):
            for base in owner.mro():
                if base.name not in described:
                    _take_over(owner, base)


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
