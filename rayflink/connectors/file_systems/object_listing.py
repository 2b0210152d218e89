"""The objects that addresses name: one object, a folder with all below it, or a pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .object_paths import ObjectPath

_MAGIC = re.compile(r"[*?\[]")


def find_objects(path: ObjectPath, may_be_empty: bool = False) -> list[ObjectPath]:
    """Return the objects named by an address, in order of name: one object, all in a folder, or the matches of a
    pattern; hidden ones (`.`, `_`) and those without bytes whose names end with a slash are left out.

    A pattern is matched step by step as one of local files is: `*` and `?` match no slash, `**` any number of folders.

    Args:
        may_be_empty: a pattern may have no match, and a folder may not be there yet.

    Raises:
        FileNotFoundError: the address names nothing.
        ObjectStoreError: the store refuses the listing.
    """
    key = path.key.strip("/")
    if not _MAGIC.search(key):
        objects = _below(path, key)
        if not objects and key and (entry := path.store.find(key)) is not None:
            return [ObjectPath(str(path), path.store, entry)]
    else:
        objects = _matches(path, key)
    if not objects and not may_be_empty:
        raise FileNotFoundError(f"no object, folder or match for {str(path)!r}; correct the address")
    return objects


def _below(path: ObjectPath, folder: str) -> list[ObjectPath]:
    return [candidate for candidate in path.store.list(folder) if _is_shown(candidate.key, folder)]


def _is_shown(key: str, folder: str) -> bool:
    """Return whether no step of a name below a folder is hidden; the object itself has no step."""
    steps = key[len(folder) :].strip("/").split("/")
    return not key.endswith("/") and not any(step[:1] in (".", "_") for step in steps)


def _matches(path: ObjectPath, pattern: str) -> list[ObjectPath]:
    steps = pattern.split("/")
    fixed = next(index for index, step in enumerate(steps) if _MAGIC.search(step))
    is_match = re.compile("".join(_translated(steps)))
    objects = []
    for candidate in path.store.list("/".join(steps[:fixed])):
        key = candidate.key
        matched = is_match.match(f"{key}/")  # a pattern that matches a folder stands for all in it
        if matched and _is_shown(key, key[: matched.end()]):
            objects.append(candidate)
    return objects


def _translated(steps: Sequence[str]) -> list[str]:
    """Return the steps of a pattern as parts of a regular expression; each matches the slash behind it, too."""
    parts = []
    for step in steps:
        if step == "**":
            parts.append(r"(?:(?!\.)[^/]+/)*?")
            continue
        hidden = "" if step[:1] == "." else r"(?!\.)"
        names = re.sub(r"\\\*", "[^/]*", re.sub(r"\\\?", "[^/]", re.escape(step)))
        names = re.sub(r"\\\[(!?)((?:[^\]\\]|\\.)+?)\\\]", lambda m: f"[{'^' if m[1] else ''}{m[2]}]", names)
        parts.append(f"{hidden}{names}/")
    return parts


__all__ = ["find_objects"]
