"""The key groups, and keys, that have most of a vertex's records, from the samples of those who send them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from rayflink.common.metrics.metric_names import KEY_SAMPLES
from rayflink.state.keys.key_groups import subtask_of

from .cluster_job import Document

__all__ = ["concentration", "hot_keys"]

Figures: TypeAlias = "dict[str, object]"
SHOWN = 5
"""Key groups, and keys, of a vertex."""
LEAST_SAMPLED = 20
"""Records of which a share means something."""
ALONE = 0.5
"""Share of a subtask's records: a key group with as many is the reason for its load."""
DIVIDE = (
    "no key group is divided, so more subtasks do not help: aggregate by the key and a number first, then by the key; "
    "in SQL, table.exec.mini-batch.enabled with table.optimizer.agg-phase-strategy: TWO_PHASE does so"
)
SPREAD = "no key group stands out, so other subtasks, or a larger max parallelism, spread them more evenly"


def hot_keys(status: Document) -> dict[str, Figures]:
    """Return the hot key groups of each keyed vertex of which a sample is known.

    Args:
        status: of the job, as `JobView.status` gives it.

    Returns: vertex id -> "sampled" records, "key_groups" with "group", "subtask" (its owner) and "share", and "keys"
        with "key" (as text), "group" and "share"; the largest first. Keys are empty unless the job names them.
    """
    samples: dict[str, list[Mapping[str, Any]]] = {}
    for sample in _samples(status):
        samples.setdefault(sample["consumer"], []).append(sample)
    parallelism = {vertex["id"]: len(vertex["subtasks"]) for vertex in status["vertices"]}
    return {vertex: _merged(known, parallelism[vertex]) for vertex, known in samples.items()
            if vertex in parallelism and sum(sample["sampled"] for sample in known) >= LEAST_SAMPLED}  # fmt: skip


def _samples(status: Document) -> Iterator[Mapping[str, Any]]:
    for vertex in status["vertices"]:
        for subtask in vertex["subtasks"]:
            yield from subtask["metrics"].get(KEY_SAMPLES, ())


def _merged(samples: list[Mapping[str, Any]], parallelism: int) -> Figures:
    """Merge the samples of several producers, each of which counts by the records that it stands for."""
    groups: Counter[int] = Counter()
    keys: Counter[tuple[str, int]] = Counter()
    for sample in samples:
        weight = sample["rows"] / sample["sampled"]
        for group, count in sample["groups"]:
            groups[group] += count * weight
        for key, group, count in sample["keys"]:
            keys[key, group] += count * weight
    rows = sum(sample["rows"] for sample in samples) or 1
    most = samples[0]["max_parallelism"]
    return {
        "sampled": sum(sample["sampled"] for sample in samples),
        "key_groups": [
            {"group": group, "subtask": subtask_of(group, parallelism, most), "share": round(count / rows, 4)}
            for group, count in groups.most_common(SHOWN)
        ],
        "keys": [{"key": key, "group": group, "share": round(count / rows, 4)}
                 for (key, group), count in keys.most_common(SHOWN)],
    }  # fmt: skip


def concentration(skew: Mapping[str, Any], hot: Mapping[str, Any] | None) -> str:
    """Return in words where the records of a vertex are, and what helps.

    >>> hot = {"key_groups": [{"group": 57, "subtask": 3, "share": 0.64}], "keys": [{"key": "'x'", "share": 0.6}]}
    >>> print(concentration({"subtask": 3, "share": 0.71}, hot)[:94])
    subtask 3 gets 71% of the records: key group 57 alone has 64% (key 'x' 60%); no key group is d

    Args:
        skew: as `skew_of` gives it.
        hot: as `hot_keys` gives it of the vertex; None: nothing is known.
    """
    seen = f"subtask {skew['subtask']} gets {skew['share']:.0%} of the records"
    groups = [] if hot is None else [group for group in hot["key_groups"] if group["subtask"] == skew["subtask"]]
    if hot is None or not groups:
        return f"{seen}, so more subtasks help little: divide the hot key, or make its work cheaper"
    if groups[0]["share"] < ALONE * skew["share"]:
        return f"{seen}; {SPREAD}"
    keys = [key for key in hot["keys"] if key.get("group", groups[0]["group"]) == groups[0]["group"]]
    named = f" (key {keys[0]['key']} {keys[0]['share']:.0%})" if keys else ""
    return f"{seen}: key group {groups[0]['group']} alone has {groups[0]['share']:.0%}{named}; {DIVIDE}"
