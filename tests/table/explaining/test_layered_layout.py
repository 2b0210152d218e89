"""The places of boxes: all edges point down, and no two boxes overlap."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rayflink.table.explaining.layered_layout import Size, layered

SIZES = st.lists(st.builds(Size, st.integers(10, 300), st.integers(10, 90)), min_size=1, max_size=12)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Size], list[tuple[int, int]]]:
    sizes = draw(SIZES)
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    return sizes, draw(st.lists(st.sampled_from(pairs), max_size=20)) if pairs else []


@given(graphs())
def test_edges_point_down_and_boxes_are_apart(graph: tuple[list[Size], list[tuple[int, int]]]) -> None:
    sizes, edges = graph
    layout = layered(sizes, edges, 10, 20)
    for (upper, lower), path in zip(edges, layout.paths, strict=True):
        heights = [y for _, y in path]
        assert heights == sorted(heights)
        assert path[0][1] == layout.centers[upper][1] + sizes[upper].height
        assert path[-1][1] == layout.centers[lower][1] >= path[0][1] + 20
        assert abs(path[-1][0] - layout.centers[lower][0]) < sizes[lower].width / 2
    for left, right in itertools.combinations(range(len(sizes)), 2):
        (x, top), (other_x, other_top) = layout.centers[left], layout.centers[right]
        if top == other_top:
            assert abs(x - other_x) >= (sizes[left].width + sizes[right].width) / 2 + 10 - 1e-6
    for size, (x, top) in zip(sizes, layout.centers, strict=True):
        assert x - size.width / 2 >= -1e-6 and x + size.width / 2 <= layout.width + 1e-6
        assert top + size.height <= layout.height


def test_a_box_stands_in_the_middle_above_those_that_read_it() -> None:
    layout = layered([Size(20, 5)] * 3, [(0, 1), (0, 2)], 10, 20)
    assert layout.centers == ((25.0, 0), (10.0, 25), (40.0, 25))


def test_edges_to_one_box_end_apart() -> None:
    layout = layered([Size(20, 5), Size(30, 5)], [(0, 1), (0, 1)], 10, 20)
    assert [path[-1] for path in layout.paths] == [(10.0, 25), (20.0, 25)]
