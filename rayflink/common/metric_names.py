"""Names under which metrics are reported; all are Flink's."""

from __future__ import annotations

from typing import Final

NUM_RECORDS_IN: Final = "numRecordsIn"
NUM_RECORDS_OUT: Final = "numRecordsOut"
NUM_RECORDS_IN_RATE: Final = "numRecordsInPerSecond"
NUM_RECORDS_OUT_RATE: Final = "numRecordsOutPerSecond"
NUM_BYTES_IN: Final = "numBytesIn"
NUM_BYTES_OUT: Final = "numBytesOut"
NUM_BYTES_IN_RATE: Final = "numBytesInPerSecond"
NUM_BYTES_OUT_RATE: Final = "numBytesOutPerSecond"
NUM_BUFFERS_IN: Final = "numBuffersIn"
NUM_BUFFERS_OUT: Final = "numBuffersOut"
NUM_BUFFERS_IN_RATE: Final = "numBuffersInPerSecond"
NUM_BUFFERS_OUT_RATE: Final = "numBuffersOutPerSecond"
NUM_RECORDS_IN_ERRORS: Final = "numRecordsInErrors"
NUM_LATE_RECORDS_DROPPED: Final = "numLateRecordsDropped"
CURRENT_INPUT_WATERMARK: Final = "currentInputWatermark"
CURRENT_INPUT_N_WATERMARKS: Final = ("currentInput1Watermark", "currentInput2Watermark")
CURRENT_OUTPUT_WATERMARK: Final = "currentOutputWatermark"
BUSY_TIME: Final = "busyTimeMsPerSecond"
IDLE_TIME: Final = "idleTimeMsPerSecond"
BACK_PRESSURED_TIME: Final = "backPressuredTimeMsPerSecond"
BUSY_TIME_TOTAL: Final = "accumulateBusyTimeMs"
IDLE_TIME_TOTAL: Final = "accumulateIdleTimeMs"
BACK_PRESSURED_TIME_TOTAL: Final = "accumulateBackPressuredTimeMs"
IS_BACK_PRESSURED: Final = "isBackPressured"
WATERMARK_LAG: Final = "watermarkLag"
WATERMARK_ALIGNMENT_DRIFT: Final = "watermarkAlignmentDrift"
SPLIT: Final = "split"
CURRENT_WATERMARK: Final = "currentWatermark"
IS_IDLE: Final = "isIdle"
INPUT_QUEUE_LENGTH: Final = "inputQueueLength"
OUTPUT_QUEUE_LENGTH: Final = "outputQueueLength"
IN_POOL_USAGE: Final = "inPoolUsage"
OUT_POOL_USAGE: Final = "outPoolUsage"
INPUT_EXCLUSIVE_BUFFERS_USAGE: Final = "inputExclusiveBuffersUsage"
INPUT_FLOATING_BUFFERS_USAGE: Final = "inputFloatingBuffersUsage"
UPTIME: Final = "uptime"
DOWNTIME: Final = "downtime"
RUNNING_TIME: Final = "runningTime"
CHECKPOINT_ALIGNMENT_TIME: Final = "checkpointAlignmentTime"
CHECKPOINT_START_DELAY: Final = "checkpointStartDelayNanos"
LAST_CHECKPOINT_DURATION: Final = "lastCheckpointDuration"
LAST_CHECKPOINT_SIZE: Final = "lastCheckpointSize"
LAST_CHECKPOINT_FULL_SIZE: Final = "lastCheckpointFullSize"
LAST_CHECKPOINT_EXTERNAL_PATH: Final = "lastCheckpointExternalPath"
LAST_CHECKPOINT_RESTORE_TIMESTAMP: Final = "lastCheckpointRestoreTimestamp"
NUMBER_OF_COMPLETED_CHECKPOINTS: Final = "numberOfCompletedCheckpoints"
NUMBER_OF_FAILED_CHECKPOINTS: Final = "numberOfFailedCheckpoints"
NUMBER_OF_IN_PROGRESS_CHECKPOINTS: Final = "numberOfInProgressCheckpoints"
TOTAL_NUMBER_OF_CHECKPOINTS: Final = "totalNumberOfCheckpoints"
NUM_RESTARTS: Final = "numRestarts"

OF_EVERY_OPERATOR: Final = frozenset(
    (NUM_RECORDS_IN, NUM_RECORDS_OUT, NUM_RECORDS_IN_RATE, NUM_RECORDS_OUT_RATE,
     CURRENT_INPUT_WATERMARK, CURRENT_OUTPUT_WATERMARK, WATERMARK_LAG, WATERMARK_ALIGNMENT_DRIFT, IS_IDLE,
     NUM_LATE_RECORDS_DROPPED, *CURRENT_INPUT_N_WATERMARKS)
)  # fmt: skip
"""What an operator reports by itself; all else are metrics of user functions and connectors, and latencies."""
