"""Plans as pictures in SVG: a box for each step, sources above, tables that are written below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ..plan.changelog import ChangelogModes
from ..plan.explain_steps import ShownPlan, ShownStep, tree_text
from ..plan.logical import Relation
from .layered_layout import Layout, Size, layered

_CHARACTER, _LINE, _PADDING = 6.7, 15.0, 9.0
"""Width of a character and height of a line, and the space around them, in px."""
_LONGEST, _MOST_LINES = 52, 6
"""Characters of a line, and lines of a box; the tooltip of the box has all."""
_GAP, _RISE, _MARGIN = 26.0, 44.0, 14.0
_SOURCES, _SINKS = ("TableSourceScan", "Values"), ("Sink",)
_OF_ROWS = ("Calc", "Correlate", "Union", "WatermarkAssigner", "ToChangelog", "FromChangelog", "Project", "Filter")
_COLORS = {
    "source": ("#e3f2e6", "#2f7d4f", "#183524", "#5fb884"),
    "row": ("#f1f4f7", "#66788a", "#232b33", "#8598ab"),
    "state": ("#fdf1e0", "#b06a1f", "#3a2a14", "#d99a52"),
    "sink": ("#e7effb", "#34608f", "#1a2c44", "#6f9fd8"),
}
"""Kind of a step -> fill and line of its box in light surroundings, and in dark ones."""


@dataclass(frozen=True)
class PlanDrawing:
    """A picture of a plan, which notebooks show.

    >>> from rayflink.table import EnvironmentSettings, TableEnvironment
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> drawing = t_env.sql_query("SELECT COUNT(*) FROM (VALUES (1), (2)) AS t(n)").draw_plan()
    >>> drawing.svg[:4], len(drawing.text.splitlines())
    ('<svg', 3)

    Args:
        svg: the picture; its colors follow those of the page, light or dark.
        text: the plan as text.
    """

    svg: str
    text: str

    def write_to_file(self, file: str | Path) -> None:
        """Write the picture to a file."""
        Path(file).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Box:
    """A step as it is drawn.

    Args:
        lines: below the title.
    """

    step: ShownStep
    title: str
    lines: tuple[str, ...]
    kind: str

    @property
    def size(self) -> Size:
        longest = max(len(self.title) + 1, *(len(line) for line in self.lines), 12)
        return Size(longest * _CHARACTER + 2 * _PADDING, (1 + len(self.lines)) * _LINE + 1.4 * _PADDING)


def drawn_plan(plans: Sequence[Relation], shown: ShownPlan) -> PlanDrawing:
    """Return the picture of plans as they are run.

    Args:
        shown: makes steps of them.
    """
    roots = [shown.of(plan) for plan in plans]
    text = tree_text(roots, lambda step: step.text, reuse=True)
    steps, modes = _steps(roots), ChangelogModes(plans)
    numbers = {id(step): number for number, step in enumerate(steps)}
    boxes = [_box(step) for step in steps]
    edges: list[tuple[int, int]] = []
    labels: list[str] = []
    for step in steps:
        for below, distribution in map(_behind_exchange, step.inputs):
            edges.append((numbers[id(below)], numbers[id(step)]))
            mode = str(modes.of(below.relation))
            labels.append(" ".join(part for part in (distribution, "" if mode == "[I]" else mode) if part))
    layout = layered([box.size for box in boxes], edges, _GAP, _RISE)
    middles = [layout.centers[lower][0] for _, lower in edges]
    return PlanDrawing("\n".join(_svg(boxes, list(zip(labels, middles, strict=True)), layout)) + "\n", text)


def _svg(boxes: Sequence[_Box], labels: Sequence[tuple[str, float]], layout: Layout) -> Iterator[str]:
    """Yield the lines of a picture.

    Args:
        labels: of the edges, each with the middle of the box that the edge leads to.
    """
    widest = max((len(label) for label, _ in labels), default=0) * _CHARACTER
    width, height = max(layout.width, widest) + 2 * _MARGIN, layout.height + 2 * _MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rayflink-plan" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" role="img">'
    )
    yield f"<title>{escape(', '.join(box.title for box in boxes if box.kind in ('source', 'sink')))}</title>"
    yield f"<style>{_style()}</style>"
    yield f'<rect class="paper" width="{width:.1f}" height="{height:.1f}" rx="6"/>'
    for path in layout.paths:
        points = [(x + _MARGIN, y + _MARGIN) for x, y in path]
        yield f'<path class="edge" d="{_curve(points)}"/>'
        x, y = points[-1]
        yield f'<path class="tip" d="M{x - 4:.1f},{y - 7:.1f} L{x:.1f},{y:.1f} L{x + 4:.1f},{y - 7:.1f} Z"/>'
    for path, (label, middle) in zip(layout.paths, labels, strict=True):
        if label:
            yield _drawn_label(_short(label, 34), path[-1], is_left=path[-1][0] < middle - 1)
    for box, (x, top) in zip(boxes, layout.centers, strict=True):
        yield from _drawn_box(box, x + _MARGIN, top + _MARGIN)
    yield "</svg>"


def _drawn_label(label: str, place: tuple[float, float], is_left: bool) -> str:
    """Return the label of an edge beside its tip: on the left where other edges follow on the right."""
    x, y = place[0] + _MARGIN + (-9 if is_left else 9), place[1] + _MARGIN - 10
    anchor = ' text-anchor="end"' if is_left else ""
    return f'<text class="label" x="{x:.1f}" y="{y:.1f}"{anchor}>{escape(label)}</text>'


def _drawn_box(box: _Box, x: float, top: float) -> Iterator[str]:
    size = box.size
    left = x - size.width / 2
    yield f'<g class="{box.kind}"><title>{escape(box.step.text)}</title>'
    yield f'<rect x="{left:.1f}" y="{top:.1f}" width="{size.width:.1f}" height="{size.height:.1f}" rx="5"/>'
    for number, line in enumerate((box.title, *box.lines)):
        style = "name" if number == 0 else "detail"
        down = top + _PADDING / 2 + _LINE * (number + 0.85)
        yield f'<text class="{style}" x="{left + _PADDING:.1f}" y="{down:.1f}">{escape(line)}</text>'
    yield "</g>"


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """Return a path through points that leaves and reaches each of them straight down."""
    (x, y), *others = points
    parts = [f"M{x:.1f},{y:.1f}"]
    for to_x, to_y in others:
        middle = (y + to_y) / 2
        parts.append(f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}")
        x, y = to_x, to_y
    return " ".join(parts)


def _style() -> str:
    """Return the style sheet; its rules hold in this picture alone, also within a page."""
    own = ".rayflink-plan "
    light = [f"{own}.{kind} rect{{fill:{fill};stroke:{line}}}" for kind, (fill, line, _, _) in _COLORS.items()]
    dark = [f"{own}.{kind} rect{{fill:{fill};stroke:{line}}}" for kind, (_, _, fill, line) in _COLORS.items()]
    return "".join([
        f"{own}text{{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1c2733;white-space:pre}}",
        f"{own}.name{{font-weight:bold}}{own}.label{{font-size:10px;fill:#52616f;paint-order:stroke;stroke:#ffffff;stroke-width:3px}}",
        f"{own}.paper{{fill:#ffffff}}{own}.edge{{fill:none;stroke:#8a98a6;stroke-width:1.4}}{own}.tip{{fill:#8a98a6}}",
        *light,
        "@media (prefers-color-scheme:dark){",
        f"{own}.paper{{fill:#14191f}}{own}text{{fill:#e6ebf0}}{own}.label{{fill:#a9b7c4;stroke:#14191f}}",
        *dark,
        "}",
    ])  # fmt: skip


def _steps(roots: Sequence[ShownStep]) -> list[ShownStep]:
    """Return the steps without exchanges, each once and behind its inputs."""
    known: dict[int, ShownStep] = {}

    def visit(step: ShownStep) -> None:
        if id(step) not in known:
            for below, _ in map(_behind_exchange, step.inputs):
                visit(below)
            known[id(step)] = step

    for root in roots:
        visit(root)
    return list(known.values())


def _behind_exchange(step: ShownStep) -> tuple[ShownStep, str]:
    """Return the step whose rows an exchange distributes, and how; "" for a step that is no exchange."""
    if not step.text.startswith("Exchange("):
        return step, ""
    below, _ = _behind_exchange(step.inputs[0])
    return below, step.text.removeprefix("Exchange(distribution=[").removesuffix("])")


def _box(step: ShownStep) -> _Box:
    name, _, attributes = step.text.partition("(")
    parts = [line for part in _parts(attributes.removesuffix(")")) for line in _lines_of(part)]
    lines = [_short(part, _LONGEST) for part in parts[:_MOST_LINES]]
    if len(parts) > _MOST_LINES:
        lines[-1] = f"... {len(parts) - _MOST_LINES + 1} more"
    kind = "source" if name in _SOURCES else "sink" if name in _SINKS else "row" if name in _OF_ROWS else "state"
    return _Box(step, name, tuple(lines), kind)


def _lines_of(part: str) -> list[str]:
    """Return the lines of an attribute; the table of a scan and what is pushed into it are one each.

    >>> _lines_of("table=[[shop, main, orders, project=[id, n], limit=[3]]]")
    ['table=[shop.main.orders]', 'project=[id, n]', 'limit=[3]']
    """
    if not part.startswith("table=[["):
        return [part] if part else []
    items = _parts(part.removeprefix("table=[[").removesuffix("]]"))
    return [f"table=[{'.'.join(item for item in items if '=' not in item)}]", *(item for item in items if "=" in item)]


def _parts(attributes: str) -> list[str]:
    """Return the attributes of a step, which commas divide outside of brackets and quotes.

    >>> _parts("select=[a, 'x, y' AS b], where=[f(a, b)]")
    ["select=[a, 'x, y' AS b]", 'where=[f(a, b)]']
    """
    parts, depth, quoted = [""], 0, False
    for character in attributes:
        quoted ^= character == "'"
        if not quoted:
            depth += (character in "([{") - (character in ")]}")
        if character == "," and depth <= 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


__all__ = ["PlanDrawing", "drawn_plan"]
