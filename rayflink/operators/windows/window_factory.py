"""The factory of window operators: the fastest one that assigner, trigger and evictor allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .assigners import AlignedWindows, WindowAssigner
from .evicting_windows import EvictingMergingWindowOperator, EvictingWindowOperator
from .evictors import Evictor
from .merging_windows import MergingWindowOperator
from .pane_contents import can_share
from .pane_windows import PaneWindowOperator
from .session_operator import SessionWindowOperator
from .session_windows import MergingWindowAssigner, are_plain_sessions
from .triggered_windows import TriggeredWindowOperator
from .triggers import Trigger
from .window_functions import WindowContents, WindowEvaluation
from .window_operator import BaseWindowOperator, WindowOperator


@dataclass(frozen=True)
class WindowRules:
    """The trigger, the evictor and the lateness of windows.

    Args:
        trigger: None for the assigner's default.
        allowed_lateness_ms: how long a window takes records after it fired, at least 0; event time only.
        late_tag_id: side output of late records, or None.
        evictor: takes records out of windows that fire, or None.
    """

    trigger: Trigger[Any, Any] | None = None
    allowed_lateness_ms: int = 0
    late_tag_id: str | None = None
    evictor: Evictor[Any, Any] | None = None


def window_operator(
    key_selector: Any,
    assigner: WindowAssigner[Any, Any],
    contents: WindowContents,
    evaluation: WindowEvaluation | None = None,
    rules: WindowRules | None = None,
) -> BaseWindowOperator:
    """Return the fastest operator that gives the results of these windows.

    Args:
        key_selector: a KeySelector or a callable.
        assigner: places records into windows.
        contents: how the records of a window are accumulated in state.
        evaluation: the function called when a window fires; None emits the contents' result.
        rules: trigger and lateness; None for the assigner's trigger and no lateness.

    Raises:
        ValueError: the lateness is negative.
    """
    chosen = rules or WindowRules()
    lateness, late_tag = chosen.allowed_lateness_ms, chosen.late_tag_id
    if chosen.trigger is None and chosen.evictor is None and is_plainly_aligned(assigner):
        shares = assigner.size_ms > assigner.slide_ms and can_share(contents)  # type: ignore[attr-defined]
        kind = PaneWindowOperator if shares else WindowOperator
        return kind(key_selector, assigner, contents, evaluation, lateness, late_tag)
    if chosen.trigger is None and chosen.evictor is None and are_plain_sessions(assigner):
        return SessionWindowOperator(key_selector, assigner, contents, evaluation, lateness, late_tag)
    trigger = chosen.trigger or assigner.get_default_trigger(None)
    if chosen.evictor is not None:
        merges = isinstance(assigner, MergingWindowAssigner)
        evicts = EvictingMergingWindowOperator if merges else EvictingWindowOperator
        return evicts(key_selector, assigner, contents, evaluation, lateness, late_tag, trigger, chosen.evictor)
    if isinstance(assigner, MergingWindowAssigner):
        return MergingWindowOperator(key_selector, assigner, contents, evaluation, lateness, late_tag, trigger)
    return TriggeredWindowOperator(key_selector, assigner, contents, evaluation, lateness, late_tag, trigger)


def is_plainly_aligned(assigner: Any) -> bool:
    """Return whether the assigner makes aligned windows with their own trigger, unchanged by a derived class."""
    kind = type(assigner)
    return (
        issubclass(kind, AlignedWindows)
        and kind.assign_windows is AlignedWindows.assign_windows
        and kind.get_default_trigger is AlignedWindows.get_default_trigger
    )


def needs_no_trigger(assigner: Any) -> bool:
    """Return whether there is an operator with the default trigger of the assigner's windows built in."""
    return is_plainly_aligned(assigner) or are_plain_sessions(assigner)


def window_operator_of(
    key_selector: Any,
    contents: Callable[[], WindowContents],
    function: Any,
    assigner: WindowAssigner[Any, Any],
    *rules: Any,
) -> BaseWindowOperator:
    """Return the `window_operator` for a user's function or None, contents from a factory, and `WindowRules`."""
    evaluation = None if function is None else WindowEvaluation(function)
    return window_operator(key_selector, assigner, contents(), evaluation, WindowRules(*rules))


__all__ = ["WindowRules", "is_plainly_aligned", "needs_no_trigger", "window_operator", "window_operator_of"]
