"""Places boxes of a directed graph without cycles in layers, so that all edges point down.

Each box is above those that read it, as near to them as it can be. Edges over several layers pass through points of
their own in the layers between. The order in a layer follows the mean of the neighbors; then each layer is placed as
near to its neighbors as the widths of boxes allow.

Source: Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical System Structures" (1981); the
places in a layer are an isotonic regression, by pooling adjacent violators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SWEEPS = 8
"""Passes over the layers, half of them down and half of them up."""


@dataclass(frozen=True)
class Size:
    """The size of a box, in px."""

    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """Places of boxes and edges, in px; y grows downwards.

    Args:
        centers: of the boxes, by number: x of the middle and y of the upper edge.
        paths: of the edges, by number: points from the lower edge of a box to the upper edge of another.
        width: of the whole.
        height: of the whole.
    """

    centers: tuple[tuple[float, float], ...]
    paths: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float


def layered(sizes: Sequence[Size], edges: Sequence[tuple[int, int]], gap: float, rise: float) -> Layout:
    """Return the places of boxes and edges.

    >>> layered([Size(10, 4), Size(10, 4), Size(20, 4)], [(0, 2), (1, 2)], 6, 10).centers
    ((5.0, 0.0), (21.0, 0.0), (13.0, 14.0))

    Args:
        sizes: of the boxes.
        edges: (number of a box, number of a box below it) each; there is no cycle.
        gap: between two boxes of a layer.
        rise: between two layers.
    """
    layer_of = _layers(len(sizes), edges)
    graph = _Graph(sizes, edges, layer_of)
    for sweep in range(SWEEPS):
        graph.order(down=sweep % 2 == 0)
    places = graph.places(gap)
    left = min(places[node] - graph.width(node) / 2 for node in range(len(places)))
    right = max(places[node] + graph.width(node) / 2 for node in range(len(places)))
    heights = [max((sizes[node].height for node in layer if node < len(sizes)), default=0.0) for layer in graph.layers]
    tops = [sum(heights[:index], 0.0) + rise * index for index in range(len(heights))]
    centers = tuple((places[node] - left, tops[layer_of[node]]) for node in range(len(sizes)))
    paths = []
    for chain, entry in zip(graph.chains, graph.entries(places), strict=True):
        first, *between, last = chain
        points = [(places[first] - left, tops[layer_of[first]] + sizes[first].height)]
        for step, node in enumerate(between, layer_of[first] + 1):
            points += [(places[node] - left, tops[step]), (places[node] - left, tops[step] + heights[step])]
        paths.append((*points, (entry - left, tops[layer_of[last]])))
    return Layout(centers, tuple(paths), right - left, tops[-1] + heights[-1])


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each box: as low as those that read it allow, from 0."""
    distance = [0] * count
    for _ in range(count):
        before = list(distance)
        for upper, lower in edges:
            distance[upper] = max(distance[upper], distance[lower] + 1)
        if distance == before:
            break
    deepest = max(distance, default=0)
    return [deepest - steps for steps in distance]


class _Graph:
    """Boxes, and a point in each layer that an edge passes through, in the order of their layers."""

    def __init__(self, sizes: Sequence[Size], edges: Sequence[tuple[int, int]], layer_of: Sequence[int]) -> None:
        self._widths = [size.width for size in sizes]
        self.layers: list[list[int]] = [[] for _ in range(max(layer_of) + 1)]
        self.chains: list[list[int]] = []
        """The boxes and points of each edge, from above."""
        for node, layer in enumerate(layer_of):
            self.layers[layer].append(node)
        for upper, lower in edges:
            chain = [upper]
            for layer in range(layer_of[upper] + 1, layer_of[lower]):
                chain.append(len(self._widths))
                self.layers[layer].append(chain[-1])
                self._widths.append(0.0)
            self.chains.append([*chain, lower])
        self._above: list[list[int]] = [[] for _ in self._widths]
        self._below: list[list[int]] = [[] for _ in self._widths]
        for chain in self.chains:
            for upper, lower in zip(chain, chain[1:], strict=False):
                self._above[lower].append(upper)
                self._below[upper].append(lower)

    def width(self, node: int) -> float:
        """Return the width of a box; of a point 0."""
        return self._widths[node]

    def order(self, down: bool) -> None:
        """Sort each layer by the mean place of its neighbors in the layer before, going down or up."""
        neighbors = self._above if down else self._below
        rank = {node: float(index) for layer in self.layers for index, node in enumerate(layer)}
        for layer in self.layers if down else reversed(self.layers):
            means = {node: _mean([rank[other] for other in neighbors[node]], rank[node]) for node in layer}
            layer.sort(key=means.__getitem__)
            rank.update({node: float(index) for index, node in enumerate(layer)})

    def places(self, gap: float) -> list[float]:
        """Return the x of the middle of each box and point."""
        places = [0.0] * len(self._widths)
        for layer in self.layers:
            for node, place in zip(layer, self._apart([0.0] * len(layer), layer, gap), strict=True):
                places[node] = place
        for sweep in range(SWEEPS):
            neighbors = self._above if sweep % 2 == 0 else self._below
            for layer in self.layers if sweep % 2 == 0 else self.layers[::-1]:
                wanted = [_mean([places[other] for other in neighbors[node]], places[node]) for node in layer]
                for node, place in zip(layer, self._apart(wanted, layer, gap), strict=True):
                    places[node] = place
        return places

    def entries(self, places: Sequence[float]) -> list[float]:
        """Return the x at which each edge reaches its box; several of one box are apart, in the order of their ways."""
        entries = [0.0] * len(self.chains)
        by_box: dict[int, list[int]] = {}
        for number, chain in enumerate(self.chains):
            by_box.setdefault(chain[-1], []).append(number)
        for box, numbers in by_box.items():
            numbers.sort(key=lambda number: (places[self.chains[number][-2]], number))
            step = self._widths[box] / (len(numbers) + 1)
            for index, number in enumerate(numbers, 1):
                entries[number] = places[box] - self._widths[box] / 2 + step * index
        return entries

    def _apart(self, wanted: Sequence[float], layer: Sequence[int], gap: float) -> list[float]:
        """Return the places nearest to those that are wanted at which the boxes of a layer do not overlap."""
        offsets, offset = [0.0], 0.0
        for left, right in zip(layer, layer[1:], strict=False):
            offset += (self._widths[left] + self._widths[right]) / 2 + gap
            offsets.append(offset)
        blocks: list[tuple[float, int]] = []
        for place, offset in zip(wanted, offsets, strict=False):
            mean, count = place - offset, 1
            while blocks and blocks[-1][0] >= mean:
                other, others = blocks.pop()
                mean, count = (other * others + mean * count) / (others + count), others + count
            blocks.append((mean, count))
        flat = [mean for mean, count in blocks for _ in range(count)]
        return [mean + offset for mean, offset in zip(flat, offsets, strict=False)]


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


__all__ = ["Layout", "Size", "layered"]
