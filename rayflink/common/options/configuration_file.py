"""Reads a file of options: YAML, with nested keys as in Flink's config.yaml or with dotted ones."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any

import yaml

from ..errors import ConfigError, shorten
from .option_types import MAP
from .registry import by_key

__all__ = ["options_of_file"]

_WANTED = "`key: value`, nested or with one dotted key a line"
_REMEDY = "write for example `execution.checkpointing.interval: 10 s`, or its parts nested with two spaces each"


def options_of_file(path: str | PathLike[str]) -> list[tuple[str, Any, int]]:
    """Return the options of a YAML file in their order: dotted key, value, line from 1 on.

    Values are strings as they stand, lists of strings, or for an option of type map a dict of strings.

    Raises:
        ConfigError: it is no YAML or not in UTF-8, a key has no value or comes twice, or a value is of no such form.
        OSError: it cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            root = yaml.compose(file, Loader=yaml.SafeLoader)
    except UnicodeDecodeError:
        raise ConfigError(str(path), "not UTF-8", _WANTED, "save the file as UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise _refused(path, line, error.problem or str(error)) from None
    except yaml.YAMLError as error:
        raise ConfigError(str(path), " ".join(str(error).split()), _WANTED, _REMEDY) from None
    options: list[tuple[str, Any, int]] = []
    if root is not None:
        seen: dict[str, int] = {}
        for key, value, line in _entries(path, root, ""):
            if key in seen:
                raise _refused(path, line, f"{key!r} a second time, after line {seen[key]}")
            seen[key] = line
            options.append((key, value, line))
    return options


def _entries(path: str | PathLike[str], node: yaml.Node, prefix: str) -> Iterator[tuple[str, Any, int]]:
    if not isinstance(node, yaml.MappingNode):
        actual = shorten(node.value) if isinstance(node, yaml.ScalarNode) else "a list"
        raise _refused(path, _line(node), actual)
    for key_node, value in node.value:
        if not isinstance(key_node, yaml.ScalarNode) or not key_node.value:
            raise _refused(path, _line(key_node), "a key that is not a string")
        key, line = prefix + key_node.value, _line(key_node)
        if _is_empty(value):
            raise _refused(path, line, f"{key!r} without a value")
        if isinstance(value, yaml.ScalarNode):
            yield key, value.value, line
        elif isinstance(value, yaml.SequenceNode):
            yield key, [_item(path, key, item) for item in value.value], line
        elif _takes_a_map(key):
            yield key, {name: text for name, text, _ in _texts(path, key, value)}, line
        else:
            yield from _entries(path, value, f"{key}.")


def _texts(path: str | PathLike[str], key: str, node: yaml.MappingNode) -> Iterator[tuple[str, str, int]]:
    for name, text, line in _entries(path, node, ""):
        if not isinstance(text, str):
            raise _refused(path, line, f"{key!r} with a list in it")
        yield name, text, line


def _item(path: str | PathLike[str], key: str, node: yaml.Node) -> str:
    """Return an item of a list as a string; a map is written `k1:v1,k2:v2`, as Flink does."""
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if isinstance(node, yaml.MappingNode):
        return ",".join(f"{name}:{text}" for name, text, _ in _texts(path, key, node))
    raise _refused(path, _line(node), f"{key!r} with a list in a list")


def _takes_a_map(key: str) -> bool:
    option = by_key().get(key)
    return option is not None and option.type is MAP


def _is_empty(node: yaml.Node) -> bool:
    if isinstance(node, yaml.ScalarNode):
        return str(node.tag) == "tag:yaml.org,2002:null"
    return not node.value


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _refused(path: str | PathLike[str], line: int, problem: str) -> ConfigError:
    return ConfigError(str(path), f"line {line}: {problem}", _WANTED, _REMEDY)
