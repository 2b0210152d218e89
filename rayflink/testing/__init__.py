"""The test kit: operators under every hardship, whole jobs from a seed, laws of stores. See docs/testing.md."""

from .cases import TO_ALL
from .conformance import BACKEND_LAWS, LONG_BACKEND_LAWS, check_backend
from .elements import active, at, columns, end, idle, in2, rec, side, wm
from .faults import (
    ROUGH_NETWORK,
    CancelJob,
    DelayCalls,
    DuplicateCalls,
    Fault,
    FreezeTask,
    KillTask,
    LoseCall,
    ReorderCalls,
    SlowSink,
    SlowTask,
    StaleAttempt,
    StopJob,
    TriggerCheckpoint,
)
from .hardships import HARDSHIPS, verify
from .harness import OperatorHarness, Place, rescaled_snapshots
from .simulation import SimulatedCluster, simulate
from .sources import CRASH, PAUSE, Crash, Pause, ScriptedCrash, ScriptedSource
from .storage_laws import STORAGE_LAWS, check_storage
from .story import Happening, Story

__all__ = [
    "BACKEND_LAWS",
    "CRASH",
    "HARDSHIPS",
    "LONG_BACKEND_LAWS",
    "PAUSE",
    "ROUGH_NETWORK",
    "TO_ALL",
    "CancelJob",
    "Crash",
    "DelayCalls",
    "DuplicateCalls",
    "Fault",
    "FreezeTask",
    "Happening",
    "KillTask",
    "LoseCall",
    "OperatorHarness",
    "Pause",
    "Place",
    "ReorderCalls",
    "STORAGE_LAWS",
    "ScriptedCrash",
    "ScriptedSource",
    "SimulatedCluster",
    "SlowSink",
    "SlowTask",
    "StaleAttempt",
    "StopJob",
    "Story",
    "TriggerCheckpoint",
    "active",
    "at",
    "check_backend",
    "check_storage",
    "columns",
    "end",
    "idle",
    "in2",
    "rec",
    "rescaled_snapshots",
    "side",
    "simulate",
    "verify",
    "wm",
]
