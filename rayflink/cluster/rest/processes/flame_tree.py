"""Stacks that were sampled, as the tree of a flame graph and as a picture of it."""

from __future__ import annotations

import html
import zlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

__all__ = ["FlameNode", "flame_page", "flame_tree", "waiting"]

Stacks = Sequence["tuple[str, int]"]
WIDTH, ROW, FONT = 1200, 18, 11
LEAST_SHOWN = 1.0
"""Pixels of the narrowest frame that is drawn."""
DEEPEST = 200
"""Frames of a stack that are kept, the outermost: beyond that a recursion shows nothing new."""
_CHARACTER = 6.2
"""Pixels of a character, on average."""


class FlameNode(msgspec.Struct, frozen=True):
    """A frame, with the frames that it called.

    Args:
        name: of the function, with its file and line.
        value: the samples in which it was on the stack.
        children: what it called.
    """

    name: str
    value: int
    children: list[FlameNode]


def flame_tree(stacks: Iterable[tuple[str, int]]) -> FlameNode:
    """Return the tree of stacks, without the names of their threads.

    >>> flame_tree([("main;a;b", 2), ("main;a;c", 1)])  # doctest: +ELLIPSIS
    FlameNode(name='root', value=3, children=[FlameNode(name='a', value=3, children=[FlameNode(name='b', value=2, ...
    """
    frames = [(stack.split(";")[1 : DEEPEST + 1], samples) for stack, samples in stacks]
    return FlameNode("root", sum(samples for _, samples in frames), _children(frames))


def _children(frames: Sequence[tuple[list[str], int]]) -> list[FlameNode]:
    by_name: dict[str, list[tuple[list[str], int]]] = {}
    for names, samples in frames:
        if names:
            by_name.setdefault(names[0], []).append((names[1:], samples))
    return [FlameNode(name, sum(samples for _, samples in part), _children(part)) for name, part in by_name.items()]


def waiting(whole: Stacks, running: Stacks) -> Stacks:
    """Return the stacks of threads that wait: those of all samples without those of threads that run.

    >>> waiting([("main;a", 10), ("main;b", 5)], [("main;a", 4), ("main;b", 6)])
    [('main;a', 6)]
    """
    less = dict(running)
    rest = [(stack, samples - less.get(stack, 0)) for stack, samples in whole]
    return [(stack, samples) for stack, samples in rest if samples > 0]


def flame_page(title: str, stacks: Stacks) -> bytes:
    """Return a page of HTML with the picture of a flame graph, without a script."""
    threads = [
        FlameNode(name, node.value, node.children)
        for name, node in ((name, flame_tree(part)) for name, part in _by_thread(stacks).items())
    ]
    root = FlameNode("all threads", sum(thread.value for thread in threads), threads)
    boxes = list(_boxes(root, 0.0, WIDTH / max(root.value, 1), 0))
    height = (max((level for level, _, _, _ in boxes), default=0) + 1) * ROW
    drawn = "".join(_drawn(level, left, width, node, root.value) for level, left, width, node in boxes)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace"'
    shown = html.escape(title)
    page = f"<h1>{shown}</h1><p>{root.value} samples; a box is as wide as the time in it</p>"
    body = f'{page}{head} font-size="{FONT}">{drawn}</svg>'
    return f"<!doctype html><html lang=en><meta charset=utf-8><title>{shown}</title>{body}</html>".encode()


def _by_thread(stacks: Stacks) -> dict[str, list[tuple[str, int]]]:
    threads: dict[str, list[tuple[str, int]]] = {}
    for stack, samples in stacks:
        threads.setdefault(stack.partition(";")[0], []).append((stack, samples))
    return threads


def _boxes(node: FlameNode, left: float, scale: float, level: int) -> Iterator[tuple[int, float, float, FlameNode]]:
    width = node.value * scale
    if width < LEAST_SHOWN:
        return
    yield level, left, width, node
    for child in node.children:
        yield from _boxes(child, left, scale, level + 1)
        left += child.value * scale


def _drawn(level: int, left: float, width: float, node: FlameNode, whole: int) -> str:
    name, part = html.escape(node.name), 100 * node.value / max(whole, 1)
    hue = zlib.crc32(node.name.encode("utf-8", "replace")) % 50
    room = int(width / _CHARACTER)
    text = html.escape(node.name[:room]) if room > 2 else ""
    label = f'<text x="{left + 2:.1f}" y="{level * ROW + 13}">{text}</text>' if text else ""
    box = f'<rect x="{left:.1f}" y="{level * ROW}" width="{width:.1f}" height="{ROW - 1}" fill="hsl({hue},80%,70%)"/>'
    return f"<g><title>{name}: {node.value} samples, {part:.1f} %</title>{box}{label}</g>"
