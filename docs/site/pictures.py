"""Makes the pictures in docs/pictures from real runs: `python docs/site/pictures.py [FOLDER]`.

Job graphs are what `rayflink explain --svg` draws of the examples. The other pictures are drawn from what runs tell:
watermarks.svg and those of windows from jobs in this process, back_pressure.svg from the metrics of a simulated one,
whose seed is fixed. plan.svg is the plan of a statement set.
They come out the same each time; tests/test_site.py compares them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
ARGUMENTS = {"socket_words": ["127.0.0.1", "9999"], "flight_delays": ["--out", "{folder}"]}
"""What an example is given where it is only planned."""
NOT_DRAWN = {"flight_pipeline"}
"""Those whose plan needs Spark to have run."""


def job_graphs(folder: Path) -> list[Path]:
    """The first job graph of each example."""
    from rayflink.cli.plans import plans_of, write_svg

    written = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        if path.stem in NOT_DRAWN:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            arguments = [argument.format(folder=scratch) for argument in ARGUMENTS.get(path.stem, [])]
            planned, _ = plans_of(str(path), arguments, {})
        written += write_svg(planned[:1], folder / f"{path.stem}.svg")
    return written


def main(folder: Path = PICTURES) -> list[Path]:
    """Write all pictures into a folder; gives their paths."""
    sys.path.insert(0, str(Path(__file__).parent))
    from back_pressure import back_pressure_picture
    from plan_picture import plan_picture
    from watermarks import watermarks_picture
    from windows import window_pictures

    folder.mkdir(parents=True, exist_ok=True)
    written = job_graphs(folder)
    drawn = {"watermarks": watermarks_picture(), "back_pressure": back_pressure_picture(), "plan": plan_picture(),
             **window_pictures()}  # fmt: skip
    for name, picture in drawn.items():
        written.append(folder / f"{name}.svg")
        written[-1].write_text(picture, encoding="utf-8")
    return written


if __name__ == "__main__":
    for made in main(*map(Path, sys.argv[1:2])):
        print(made)
