"""A job graph as a self-contained SVG drawing: vertices in layers from left to right, edges as curves between them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape

from .job_graph import JobGraph, JobVertex

_FONT_PX, _CHARACTER_PX, _LINE_PX = 12, 7.25, 17
_PADDING, _LAYER_GAP, _LABEL_MARGIN, _ROW_GAP, _MARGIN, _LANE_PX = 12, 110, 56, 28, 24, 26
_LINE_CHARACTERS = 34

_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1c2733}"
    ".title{font-weight:bold}.dim{fill:#5b6b7b}.box{fill:#f4f8fc;stroke:#34608f;stroke-width:1.4}.source{fill:#eaf6ee;stroke:#2f7d4f}"
    ".sink{fill:#fdf1e7;stroke:#b0662a}.edge{fill:none;stroke:#5b6b7b;stroke-width:1.4}.paper{fill:#ffffff}"
    ".tag{fill:#ffffff;fill-opacity:.92}"
)


@dataclass
class _Cell:
    """A vertex, or the place where an edge passes a layer, in its layer."""

    layer: int
    lines: list[str] = field(default_factory=list)
    vertex: JobVertex | None = None
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = _LANE_PX

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def to_svg(job: JobGraph) -> str:
    """Draw a job graph; the picture depends on nothing outside itself."""
    cells, routes = _cells_and_routes(job)
    layers = _order(cells, routes)
    width, height = _place(layers, routes)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(job.name)}">',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#5b6b7b"/></marker></defs>',
        '<rect class="paper" width="100%" height="100%"/>',
        f'<text x="{_MARGIN}" y="{_MARGIN}" class="title">{escape(job.name)}</text>',
    ]
    drawn += [_curve(route) for route, _ in routes]
    drawn += [_box(cell) for cell in cells if cell.vertex is not None]
    drawn += [_tag(route, label, reason) for route, (label, reason) in routes]
    return "\n".join([*drawn, "</svg>"]) + "\n"


Routes = list[tuple[list[_Cell], tuple[str, str]]]


def _cells_and_routes(job: JobGraph) -> tuple[list[_Cell], Routes]:
    """Return one cell a vertex, in the layer after its last producer; an edge over several layers gets a cell in
    each.
    """
    by_id: dict[str, _Cell] = {}
    for vertex in job.vertices:
        layer = max((by_id[edge.source].layer + 1 for edge in vertex.inputs), default=0)
        by_id[vertex.id] = _vertex_cell(vertex, layer)
    cells, routes = list(by_id.values()), []
    for edge in job.edges:
        start, end = by_id[edge.source], by_id[edge.target]
        between = [_Cell(layer) for layer in range(start.layer + 1, end.layer)]
        cells += between
        label = edge.ship_strategy + (f" of {edge.tag_id}" if edge.tag_id is not None else "")
        routes.append(([start, *between, end], (label, edge.not_chained_because)))
    return cells, routes


def _vertex_cell(vertex: JobVertex, layer: int) -> _Cell:
    lines = []
    for position, operator in enumerate(vertex.operators):
        lines += _wrapped(f"-> {operator.name}" if position else operator.name)
    lines.append(f"parallelism {vertex.parallelism}")
    if vertex.slot_sharing_group != "default":
        lines[-1] += f", group {vertex.slot_sharing_group}"
    width = max(map(len, lines)) * _CHARACTER_PX + 2 * _PADDING
    return _Cell(layer, lines, vertex, width=width, height=len(lines) * _LINE_PX + 2 * _PADDING - 4)


def _wrapped(name: str) -> list[str]:
    """Return the name in lines of at most `_LINE_CHARACTERS`, broken after blanks, commas and brackets where it can
    be.
    """
    lines = [""]
    for part in re.split(r"(?<=[\s,(.])", name):
        if len(lines[-1]) + len(part.rstrip()) > _LINE_CHARACTERS and lines[-1].strip():
            lines.append("   ")
        lines[-1] += part
        while len(lines[-1].rstrip()) > _LINE_CHARACTERS:
            lines[-1:] = [lines[-1][:_LINE_CHARACTERS], "   " + lines[-1][_LINE_CHARACTERS:]]
    return [line.rstrip() for line in lines if line.strip()]


def _order(cells: list[_Cell], routes: Routes) -> list[list[_Cell]]:
    """Return the cells by layer; within a layer by the mean position of their neighbours, swept forth and back."""
    layers: list[list[_Cell]] = [[] for _ in range(max(cell.layer for cell in cells) + 1)]
    for cell in cells:
        layers[cell.layer].append(cell)
    before: dict[int, list[_Cell]] = {id(cell): [] for cell in cells}
    after: dict[int, list[_Cell]] = {id(cell): [] for cell in cells}
    for route, _ in routes:
        for left, right in zip(route, route[1:], strict=False):
            before[id(right)].append(left)
            after[id(left)].append(right)
    for sweep in range(4):
        neighbours, order = (before, layers[1:]) if sweep % 2 == 0 else (after, layers[-2::-1])
        for layer in order:
            rank = {id(cell): position for cells in layers for position, cell in enumerate(cells)}
            layer.sort(key=lambda cell: _mean([rank[id(n)] for n in neighbours[id(cell)]], rank[id(cell)]))
    return layers


def _mean(values: list[int], default: int) -> float:
    return sum(values) / len(values) if values else float(default)


def _place(layers: list[list[_Cell]], routes: Routes) -> tuple[float, float]:
    """Set every cell's place, with room for the labels between the layers; the size of the whole picture."""
    gaps = [float(_LAYER_GAP)] * len(layers)
    for route, (label, _) in routes:
        gaps[route[-2].layer] = max(gaps[route[-2].layer], len(label) * _CHARACTER_PX + _LABEL_MARGIN)
    heights = [sum(cell.height for cell in layer) + _ROW_GAP * (len(layer) - 1) for layer in layers]
    tallest, x = max(heights), float(_MARGIN)
    top = _MARGIN * 2.0
    for layer, height, gap in zip(layers, heights, gaps, strict=True):
        y, widest = top + (tallest - height) / 2, max(cell.width for cell in layer)
        for cell in layer:
            cell.x, cell.y = x, y
            cell.width = widest
            y += cell.height + _ROW_GAP
        x += widest + gap
    return x - gaps[-1] + _MARGIN, top + tallest + _MARGIN


def _curve(route: list[_Cell]) -> str:
    start = route[0]
    path = f"M{start.x + start.width:.1f},{start.middle:.1f}"
    x, y = start.x + start.width, start.middle
    for cell in route[1:]:
        bend = (cell.x - x) / 2
        path += f" C{x + bend:.1f},{y:.1f} {cell.x - bend:.1f},{cell.middle:.1f} {cell.x:.1f},{cell.middle:.1f}"
        x, y = cell.x, cell.middle
        if cell.vertex is None:
            x += cell.width
            path += f" L{x:.1f},{y:.1f}"
    return f'<path class="edge" marker-end="url(#tip)" d="{path}"/>'


def _tag(route: list[_Cell], label: str, reason: str) -> str:
    """Return the ship strategy, on the last stretch of the edge."""
    left, right = route[-2], route[-1]
    x = (left.x + left.width + right.x) / 2
    y = (left.middle + right.middle) / 2
    width = len(label) * _CHARACTER_PX + 8
    return (
        f"<g><title>{escape(reason)}</title>"
        f'<rect class="tag" x="{x - width / 2:.1f}" y="{y - 9:.1f}" width="{width:.1f}" height="18" rx="3"/>'
        f'<text class="dim" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(label)}</text></g>'
    )


def _box(cell: _Cell) -> str:
    assert cell.vertex is not None
    role = " source" if cell.vertex.is_input else " sink" if cell.vertex.is_output else ""
    rows = []
    for position, line in enumerate(cell.lines):
        last = position == len(cell.lines) - 1
        indent = len(line) - len(line.lstrip())
        rows.append(
            f"<text{' class=' + chr(34) + 'dim' + chr(34) if last else ''} "
            f'x="{cell.x + _PADDING + indent * _CHARACTER_PX:.1f}" '
            f'y="{cell.y + _PADDING + _FONT_PX - 2 + position * _LINE_PX:.1f}">{escape(line.lstrip())}</text>'
        )
    return (
        f"<g><title>{escape(cell.vertex.name)}</title>"
        f'<rect class="box{role}" x="{cell.x:.1f}" y="{cell.y:.1f}" width="{cell.width:.1f}" '
        f'height="{cell.height:.1f}" rx="7"/>' + "".join(rows) + "</g>"
    )
