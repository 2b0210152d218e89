"""Windows, their assigners and triggers, under PyFlink's module path."""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.operators.windows.assigners import (
        SlidingEventTimeWindows as SlidingEventTimeWindows,
        SlidingProcessingTimeWindows as SlidingProcessingTimeWindows,
        TumblingEventTimeWindows as TumblingEventTimeWindows,
        TumblingProcessingTimeWindows as TumblingProcessingTimeWindows,
        WindowAssigner as WindowAssigner,
    )
    from rayflink.operators.windows.continuous_triggers import (
        ContinuousEventTimeTrigger as ContinuousEventTimeTrigger,
        ContinuousProcessingTimeTrigger as ContinuousProcessingTimeTrigger,
    )
    from rayflink.operators.windows.count_windows import (
        CountSlidingWindowAssigner as CountSlidingWindowAssigner,
        CountTumblingWindowAssigner as CountTumblingWindowAssigner,
        GlobalWindows as GlobalWindows,
    )
    from rayflink.operators.windows.delta_trigger import DeltaTrigger as DeltaTrigger
    from rayflink.operators.windows.evictors import (
        CountEvictor as CountEvictor,
        DeltaEvictor as DeltaEvictor,
        Evictor as Evictor,
        EvictorContext as EvictorContext,
        TimeEvictor as TimeEvictor,
        TimestampedValue as TimestampedValue,
    )
    from rayflink.operators.windows.session_windows import (
        DynamicEventTimeSessionWindows as DynamicEventTimeSessionWindows,
        DynamicProcessingTimeSessionWindows as DynamicProcessingTimeSessionWindows,
        EventTimeSessionWindows as EventTimeSessionWindows,
        MergingWindowAssigner as MergingWindowAssigner,
        ProcessingTimeSessionWindows as ProcessingTimeSessionWindows,
        SessionWindowTimeGapExtractor as SessionWindowTimeGapExtractor,
    )
    from rayflink.operators.windows.triggers import (
        CountTrigger as CountTrigger,
        EventTimeTrigger as EventTimeTrigger,
        NeverTrigger as NeverTrigger,
        ProcessingTimeTrigger as ProcessingTimeTrigger,
        PurgingTrigger as PurgingTrigger,
        Trigger as Trigger,
        TriggerContext as TriggerContext,
        TriggerResult as TriggerResult,
    )
    from rayflink.operators.windows.window import (
        CountWindow as CountWindow,
        CountWindowSerializer as CountWindowSerializer,
        GlobalWindow as GlobalWindow,
        GlobalWindowSerializer as GlobalWindowSerializer,
        TimeWindow as TimeWindow,
        TimeWindowSerializer as TimeWindowSerializer,
        Window as Window,
    )
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.operators.windows.assigners": (
                "SlidingEventTimeWindows SlidingProcessingTimeWindows TumblingEventTimeWindows "
                "TumblingProcessingTimeWindows WindowAssigner"
            ),
            "rayflink.operators.windows.continuous_triggers": (
                "ContinuousEventTimeTrigger ContinuousProcessingTimeTrigger"
            ),
            "rayflink.operators.windows.count_windows": (
                "CountSlidingWindowAssigner CountTumblingWindowAssigner GlobalWindows"
            ),
            "rayflink.operators.windows.delta_trigger": "DeltaTrigger",
            "rayflink.operators.windows.evictors": (
                "CountEvictor DeltaEvictor Evictor EvictorContext TimeEvictor TimestampedValue"
            ),
            "rayflink.operators.windows.session_windows": (
                "DynamicEventTimeSessionWindows DynamicProcessingTimeSessionWindows EventTimeSessionWindows "
                "MergingWindowAssigner ProcessingTimeSessionWindows SessionWindowTimeGapExtractor"
            ),
            "rayflink.operators.windows.triggers": (
                "CountTrigger EventTimeTrigger NeverTrigger ProcessingTimeTrigger PurgingTrigger Trigger "
                "TriggerContext TriggerResult"
            ),
            "rayflink.operators.windows.window": (
                "CountWindow CountWindowSerializer GlobalWindow GlobalWindowSerializer TimeWindow "
                "TimeWindowSerializer Window"
            ),
        },
    )
