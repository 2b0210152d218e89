"""Charts as SVG text: a frame with axes, and what is drawn in it in the units of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1c2733}"
    ".title{font-weight:bold}.dim{fill:#5b6b7b}.paper{fill:#ffffff}.axis{stroke:#5b6b7b;stroke-width:1;fill:none}"
    ".grid{stroke:#dfe6ed;stroke-width:1}.record{fill:#34608f}.late{fill:#c0392b}"
    ".watermark{stroke:#b0662a;stroke-width:2;fill:none}.open{fill:#eaf6ee}.fired{stroke:#2f7d4f;stroke-width:2}"
    ".window{fill:#eaf6ee;stroke:#2f7d4f}.area{fill:#34608f;fill-opacity:.75}.slow{fill:#fdf1e7}"
)


@dataclass
class Frame:
    """A rectangle of the picture with the ranges of the data that it shows; y grows upwards.

    Args:
        left, top, width, height: of the rectangle, in px.
        x, y: least and greatest value shown.
    """

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    drawn: list[str] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point, in px."""
        across = self.left + (x - self.x[0]) / (self.x[1] - self.x[0]) * self.width
        return across, self.top + self.height - (y - self.y[0]) / (self.y[1] - self.y[0]) * self.height

    def box(self, style: str, x: tuple[float, float], y: tuple[float, float]) -> None:
        """A filled rectangle."""
        (left, bottom), (right, top) = self.at(x[0], y[0]), self.at(x[1], y[1])
        size = f'width="{right - left:.1f}" height="{bottom - top:.1f}"'
        self.drawn.append(f'<rect class="{style}" x="{left:.1f}" y="{top:.1f}" {size}/>')

    def dot(self, style: str, x: float, y: float) -> None:
        """A record."""
        across, down = self.at(x, y)
        self.drawn.append(f'<circle class="{style}" cx="{across:.1f}" cy="{down:.1f}" r="5"/>')

    def line(self, style: str, points: Sequence[tuple[float, float]], closed: bool = False) -> None:
        """A line through points."""
        path = " L".join("{:.1f},{:.1f}".format(*self.at(*point)) for point in points)
        self.drawn.append(f'<path class="{style}" d="M{path}{" Z" if closed else ""}"/>')

    def text(self, text: str, x: float, y: float, style: str = "dim", anchor: str = "start") -> None:
        """A text that begins, ends or has its middle at a point of the data."""
        across, down = self.at(x, y)
        self.drawn.append(label(text, across, down, style, anchor))

    def axes(self) -> None:
        """The lines at the left and below."""
        self.line("axis", [(self.x[0], self.y[1]), (self.x[0], self.y[0]), (self.x[1], self.y[0])])


def label(text: str, x: float, y: float, style: str = "dim", anchor: str = "start") -> str:
    """A text at a place in px."""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def picture(title: str, width: int, height: int, drawn: Sequence[str]) -> str:
    """The whole file; it depends on nothing outside itself."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = [f'{head} role="img" aria-label="{escape(title)}">', f"<style>{STYLE}</style>"]
    lines += ['<rect class="paper" width="100%" height="100%"/>', label(title, 24, 26, "title"), *drawn, "</svg>"]
    return "\n".join(lines) + "\n"
