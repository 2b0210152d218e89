"""Window assigners and triggers, under PyFlink's module path."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.operators.assigners import (
        SlidingEventTimeWindows as SlidingEventTimeWindows,
        SlidingProcessingTimeWindows as SlidingProcessingTimeWindows,
        TimeWindow as TimeWindow,
        TumblingEventTimeWindows as TumblingEventTimeWindows,
        TumblingProcessingTimeWindows as TumblingProcessingTimeWindows,
        WindowAssigner as WindowAssigner,
    )
    from rayflink.operators.triggers import (
        EventTimeTrigger as EventTimeTrigger,
        ProcessingTimeTrigger as ProcessingTimeTrigger,
        Trigger as Trigger,
        TriggerContext as TriggerContext,
        TriggerResult as TriggerResult,
    )
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.operators.assigners": (
                "SlidingEventTimeWindows SlidingProcessingTimeWindows TimeWindow TumblingEventTimeWindows "
                "TumblingProcessingTimeWindows WindowAssigner"
            ),
            "rayflink.operators.triggers": (
                "EventTimeTrigger ProcessingTimeTrigger Trigger TriggerContext TriggerResult"
            ),
        },
    )
