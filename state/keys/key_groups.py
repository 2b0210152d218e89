"""The arithmetic from key to key group to subtask, which decides who owns a key.

A key's hash picks one of ``max_parallelism`` key groups for ever; key groups, never single keys, are distributed to
subtasks in contiguous ranges, so that a job can be rescaled by moving ranges.
Source: apache/flink KeyGroupRangeAssignment; same bounds, equality tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ParallelismError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_MAX_PARALLELISM = 1
"""Fewest key groups a job may have."""
MAX_MAX_PARALLELISM = 1 << 15
"""Most key groups a job may have: a group number fits two bytes."""
DEFAULT_MAX_PARALLELISM = 128
"""Key groups of a job that sets none and has at most 85 subtasks."""

_MASK32 = 0xFFFF_FFFF
_MIX_1 = 0x85EB_CA6B
_MIX_2 = 0xC2B2_AE35


def key_group(key_hash: int, max_parallelism: int) -> int:
    """Return the key group of a key, in [0, max_parallelism).

    The 32-bit hash goes through MurmurHash3's finaliser, then modulo ``max_parallelism``.

    Args:
        key_hash: 32-bit hash of the key, in [0, 2**32).
        max_parallelism: key groups in all, in [1, 32768]; fixed for the job's life.
    Raises: ParallelismError: max_parallelism is out of range.

    >>> key_group(0, 128), key_group(1, 128)
    (0, 55)
    """
    _check("max parallelism", max_parallelism, MIN_MAX_PARALLELISM, MAX_MAX_PARALLELISM)
    h = key_hash & _MASK32
    h ^= h >> 16
    h = (h * _MIX_1) & _MASK32
    h ^= h >> 13
    h = (h * _MIX_2) & _MASK32
    h ^= h >> 16
    return h % max_parallelism


def key_groups_of(key_hashes: NDArray[np.uint32], max_parallelism: int) -> NDArray[np.int16]:
    """Return the key groups of many keys: ``key_group`` of each hash.

    Args:
        key_hashes: uint32[n]; not changed.
        max_parallelism: key groups in all, in [1, 32768].
    Returns: int16[n].
    Raises: ParallelismError: max_parallelism is out of range.
    """
    import numpy as np

    _check("max parallelism", max_parallelism, MIN_MAX_PARALLELISM, MAX_MAX_PARALLELISM)
    h = key_hashes ^ (key_hashes >> np.uint32(16))
    h *= np.uint32(_MIX_1)
    h ^= h >> np.uint32(13)
    h *= np.uint32(_MIX_2)
    h ^= h >> np.uint32(16)
    if max_parallelism & (max_parallelism - 1) == 0:
        h &= np.uint32(max_parallelism - 1)
    else:
        h %= np.uint32(max_parallelism)
    groups: NDArray[np.int16] = h.astype(np.int16)
    return groups


def subtask_of(key_group: int, parallelism: int, max_parallelism: int) -> int:
    """Return the subtask that owns a key group, in [0, parallelism).

    Args:
        key_group: in [0, max_parallelism).
        parallelism: running subtasks, in [1, max_parallelism].
        max_parallelism: key groups in all, in [1, 32768].
    Raises: ParallelismError: an argument is out of range.

    >>> [subtask_of(g, 3, 128) for g in (0, 42, 43, 127)]
    [0, 0, 1, 2]
    """
    _check_parallelism(parallelism, max_parallelism)
    _check("key group", key_group, 0, max_parallelism - 1)
    return key_group * parallelism // max_parallelism


def key_group_range(subtask: int, parallelism: int, max_parallelism: int) -> range:
    """Return the key groups one subtask owns; over all subtasks they partition [0, max_parallelism).

    Args:
        subtask: index in [0, parallelism).
        parallelism: running subtasks, in [1, max_parallelism].
        max_parallelism: key groups in all, in [1, 32768]; fixed for the job's life.
    Raises: ParallelismError: an argument is out of range.
    Source: apache/flink KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex.

    >>> [key_group_range(i, 3, 10) for i in range(3)]
    [range(0, 4), range(4, 7), range(7, 10)]
    """
    _check_parallelism(parallelism, max_parallelism)
    _check("subtask", subtask, 0, parallelism - 1)
    start = (subtask * max_parallelism + parallelism - 1) // parallelism
    stop = ((subtask + 1) * max_parallelism + parallelism - 1) // parallelism
    return range(start, stop)


def default_max_parallelism(parallelism: int) -> int:
    """Return the number of key groups for a job that sets none: room to grow by half, a power of two, in [128, 32768].

    Args:
        parallelism: subtasks of the operator, in [1, 32768].
    Raises: ParallelismError: parallelism is out of range.
    Source: apache/flink KeyGroupRangeAssignment.computeDefaultMaxParallelism.

    >>> [default_max_parallelism(p) for p in (1, 85, 86, 32768)]
    [128, 128, 256, 32768]
    """
    _check("parallelism", parallelism, 1, MAX_MAX_PARALLELISM)
    roomy = parallelism + parallelism // 2
    power_of_two = 1 << (roomy - 1).bit_length()
    return min(max(power_of_two, DEFAULT_MAX_PARALLELISM), MAX_MAX_PARALLELISM)


def resolve_max_parallelism(of_operator: int, of_job: int, parallelism: int) -> int:
    """Return the number of key groups of one operator: its own setting, else the job's, else the default.

    Args:
        of_operator: the operator's setting; 0 or less means not set.
        of_job: the job-wide setting; 0 or less means not set.
        parallelism: subtasks of the operator, in [1, the result].
    Raises: ParallelismError: the chosen setting or the parallelism is out of range.

    >>> resolve_max_parallelism(0, 256, 4), resolve_max_parallelism(-1, -1, 4)
    (256, 128)
    """
    if of_operator > 0:
        chosen = of_operator
    elif of_job > 0:
        chosen = of_job
    else:
        chosen = default_max_parallelism(parallelism)
    _check_parallelism(parallelism, chosen)
    return chosen


def _check_parallelism(parallelism: int, max_parallelism: int) -> None:
    _check("max parallelism", max_parallelism, MIN_MAX_PARALLELISM, MAX_MAX_PARALLELISM)
    _check("parallelism", parallelism, 1, max_parallelism)


def _check(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ParallelismError(name, value, low, high)
