"""The test kit: operators under every hardship, whole jobs from a seed, laws of stores. See docs/testing.md.

`hardships` runs one case of an operator in many ways; `elements`, `cases` and `harness` describe the case and step it.
`simulation` runs a whole job; `faults`, `random_faults`, `story` and `simulated_storage` are its input and output, and
the room `simulator` is the engine. `conformance` and `storage_laws` check state backends and checkpoint storages
against laws, which are in the room `backend_laws`; those of SQL's keyed table are in `table_laws`. `connector_laws`
holds a source or a sink, with the outside system behind it, against crashes at every place. `pattern_story` describes
what a pattern does with events.
"""

from .cases import TO_ALL
from .committed_sink import CommittedSink, LostTransaction
from .conformance import BACKEND_LAWS, LONG_BACKEND_LAWS, check_backend
from .connector_laws.laws import check_sink, check_source
from .connector_laws.subjects import SinkSubject, SourceSubject
from .elements import MAX_WATERMARK, CaseElement, active, at, columns, end, idle, in2, rec, side, wm
from .faults import (
    UNRELIABLE_NETWORK,
    Call,
    CancelJob,
    CommandFate,
    CrashBeforeNotify,
    DelayCalls,
    DelayCommands,
    DuplicateCalls,
    Fault,
    FreezeTask,
    FullStorage,
    KillCoordinator,
    KillSlot,
    KillTask,
    LoseCall,
    LoseCommand,
    LoseFile,
    LyingStorage,
    ReorderCalls,
    Rescale,
    SlowRecords,
    SlowSink,
    SlowStorage,
    SlowTask,
    StaleAttempt,
    StopJob,
    StopWithSavepoint,
    StorageFault,
    TakeSavepoint,
    TriggerCheckpoint,
    UnheardStorage,
)
from .function_operators import operator_of
from .hardships import HARDSHIPS, verify
from .harness import OperatorHarness, Place, rescaled_snapshots
from .pattern_story import why
from .random_faults import random_faults
from .simulated_storage import Operation, Outcome, SimulatedDisk
from .simulation import SimulatedCluster, simulate
from .sources import CRASH, PAUSE, Crash, Pause, ScriptedCrash, ScriptedSource
from .storage_laws import STORAGE_LAWS, check_storage
from .story import Happening, Story

__all__ = [
    "BACKEND_LAWS",
    "CRASH",
    "HARDSHIPS",
    "LONG_BACKEND_LAWS",
    "MAX_WATERMARK",
    "PAUSE",
    "UNRELIABLE_NETWORK",
    "STORAGE_LAWS",
    "TO_ALL",
    "Call",
    "CancelJob",
    "CaseElement",
    "CommandFate",
    "CommittedSink",
    "Crash",
    "CrashBeforeNotify",
    "DelayCalls",
    "DelayCommands",
    "DuplicateCalls",
    "Fault",
    "FreezeTask",
    "FullStorage",
    "Happening",
    "KillCoordinator",
    "KillSlot",
    "KillTask",
    "LoseCall",
    "LoseCommand",
    "LoseFile",
    "LostTransaction",
    "LyingStorage",
    "Operation",
    "OperatorHarness",
    "Outcome",
    "Pause",
    "Place",
    "ReorderCalls",
    "Rescale",
    "ScriptedCrash",
    "ScriptedSource",
    "SimulatedCluster",
    "SimulatedDisk",
    "SinkSubject",
    "SlowSink",
    "SlowStorage",
    "SlowRecords",
    "SlowTask",
    "SourceSubject",
    "StaleAttempt",
    "StopJob",
    "StopWithSavepoint",
    "StorageFault",
    "Story",
    "TakeSavepoint",
    "TriggerCheckpoint",
    "UnheardStorage",
    "active",
    "at",
    "check_backend",
    "check_sink",
    "check_source",
    "check_storage",
    "columns",
    "end",
    "idle",
    "in2",
    "operator_of",
    "random_faults",
    "rec",
    "rescaled_snapshots",
    "side",
    "simulate",
    "verify",
    "wm",
    "why",
]
