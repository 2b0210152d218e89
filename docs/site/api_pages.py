"""The pages of the API reference, made from docs/site/api.yaml; mkdocstrings fills them from the docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = Path(__file__).with_name("api.yaml")
NAMES = ROOT / "tests" / "golden" / "public_api.txt"
"""The list of public names."""
OVERVIEW = """# API reference

Every public name by subject: each line is a page. Below stand the same names [by the module](#by-module) from which
they are imported. Names, signatures and modules are PyFlink's where PyFlink has them.

"""
BY_MODULE = """## By module

"""


@dataclass(frozen=True)
class Group:
    """Names of a page under one heading.

    Args:
        names: by the module to import them from.
    """

    title: str
    text: str
    names: Mapping[str, Sequence[str]]

    @property
    def paths(self) -> list[str]:
        """The names with their modules."""
        return [f"{module}.{name}" for module, names in self.names.items() for name in names]

    @property
    def anchor(self) -> str:
        """The address of the group on its page."""
        return re.sub(r"[^a-z0-9]+", "-", re.sub(r"[^a-z0-9 -]", "", self.title.lower())).strip("-")

    def markdown(self) -> str:
        """The group's section, with a directive of mkdocstrings for each name."""
        parts = [f"## {self.title}", self.text] if self.text else [f"## {self.title}"]
        for module, names in self.names.items():
            parts.append(f"From `{module}`:")
            parts += [f"::: {module}.{name}\n    options:\n      heading_level: 3" for name in names]
        return "\n\n".join(parts)


@dataclass(frozen=True)
class ApiPage:
    """A page of the API reference."""

    name: str
    title: str
    text: str
    groups: Sequence[Group]

    def markdown(self) -> str:
        """The page in Markdown."""
        return "\n\n".join([f"# {self.title}", self.text, *(group.markdown() for group in self.groups)]) + "\n"


@cache
def api_pages() -> list[ApiPage]:
    """Return the pages in the order of the navigation."""
    pages = yaml.safe_load(PAGES.read_text(encoding="utf-8"))
    return [
        ApiPage(page["page"], page["title"], page["text"].strip(), [_group(group) for group in page["groups"]])
        for page in pages
    ]


def _group(found: Mapping[str, object]) -> Group:
    names = found["names"]
    assert isinstance(names, dict)
    lists = {module: str(listed).split() for module, listed in names.items()}
    return Group(str(found["title"]), str(found.get("text", "")).strip(), lists)


def public_paths() -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each public name, without methods."""
    for line in NAMES.read_text(encoding="utf-8").splitlines():
        module, _, name = line.rpartition(".")
        if "(" not in line:
            yield module, name


def described_as(module: str, name: str, paths: Sequence[str]) -> str | None:
    """Return the path under which the reference describes a name of a module; None where it does not.

    Modules of one name may hold different things, so its own module comes first, then the only one with the name, then
    the only one with the same thing under it.
    """
    if f"{module}.{name}" in paths:
        return f"{module}.{name}"
    others = [path for path in paths if path.rpartition(".")[2] == name]
    if len(others) > 1:
        value = getattr(import_module(module), name)
        others = [path for path in others if getattr(import_module(path.rpartition(".")[0]), name) is value]
    return others[0] if len(others) == 1 else None


def overview(pages: Sequence[ApiPage]) -> str:
    """Return the first page of the reference: what is where, and all names by their modules."""
    lines = []
    for page in pages:
        groups = "; ".join(f"[{group.title}]({page.name}.md#{group.anchor})" for group in page.groups)
        lines.append(f"- [**{page.title}**]({page.name}.md): {groups}")
    paths = [path for page in pages for group in page.groups for path in group.paths]
    by_module: dict[str, dict[str, str | None]] = {}
    for path in paths:
        module, _, name = path.rpartition(".")
        by_module.setdefault(module, {})[name] = path
    for module, name in public_paths():
        by_module.setdefault(module, {})[name] = described_as(module, name, paths)
    modules = [
        f"**`{module}`**: " + ", ".join(f"[`{name}`][{path}]" for name, path in sorted(names.items()) if path)
        for module, names in sorted(by_module.items())
    ]
    return OVERVIEW + "\n".join(lines) + "\n\n" + BY_MODULE + "\n\n".join(modules) + "\n"
