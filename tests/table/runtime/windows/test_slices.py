"""The laws of slices: windows are made of them, and each time lies in one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rayflink.table.plan.logical import WindowKind
from rayflink.table.runtime.aggregates.window_spec import WindowSpec
from rayflink.table.runtime.windows.slicing import Slicing

from .window_cases import windows_of

LEAST, MOST = -(2**63), 2**63 - 1


@st.composite
def specs(draw: st.DrawFn) -> WindowSpec:
    kind = draw(st.sampled_from([WindowKind.TUMBLE, WindowKind.HOP, WindowKind.CUMULATE]))
    step = draw(st.integers(1, 20))
    size = step * draw(st.integers(1, 6))
    if kind is WindowKind.HOP:
        size += draw(st.integers(0, 20))  # no multiple of the slide
    slide = 0 if kind is WindowKind.TUMBLE else step
    return WindowSpec(kind, size, slide, offset_ms=draw(st.integers(-30, 30)), time_column=0)


times = st.integers(-200, 200)


@given(specs(), st.lists(times, min_size=1))
def test_a_time_lies_in_its_slice(spec, some):
    slicing = Slicing(spec)
    ends = slicing.slice_ends(np.array(some))
    assert ends.tolist() == [slicing.slice_end(time) for time in some]
    assert all(end - slicing.slice_ms <= time < end for time, end in zip(some, ends, strict=True))


@given(specs(), times)
def test_the_windows_of_a_slice_are_those_of_its_times(spec, time):
    slicing = Slicing(spec)
    end = slicing.slice_end(time)
    starts = slicing.assigner.window_start
    found = [(starts(window), window) for window, _, _ in slicing.windows_due([end], LEAST, MOST)]
    assert found == sorted(windows_of(spec, time), key=lambda window: window[1])
    assert found[-1][1] == slicing.assigner.last_window(end)


@given(specs(), st.sets(times, min_size=1), times, st.integers(0, 100))
def test_each_window_with_a_slice_is_due_once(spec, some, after, more):
    slicing = Slicing(spec)
    ends = sorted({slicing.slice_end(time) for time in some})
    wanted = sorted({window for time in some for window in windows_of(spec, time)}, key=lambda window: window[1])
    both = [*slicing.windows_due(ends, LEAST, after), *slicing.windows_due(ends, after, after + more)]
    both += slicing.windows_due(ends, after + more, MOST)
    assert [(slicing.assigner.window_start(window), window) for window, _, _ in both] == wanted
    for window, first, stop in both:
        assert ends[first:stop] == [end for end in ends if slicing.assigner.window_start(window) < end <= window]


@given(specs(), st.sets(times, min_size=1), times)
def test_the_next_firing_is_that_of_the_next_window(spec, some, after):
    slicing = Slicing(spec)
    ends = sorted({slicing.slice_end(time) for time in some})
    due = [window for window, _, _ in slicing.windows_due(ends, after, MOST)]
    assert slicing.next_firing(ends, after) == (due[0] - 1 if due else None)
