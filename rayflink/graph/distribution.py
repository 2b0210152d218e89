"""The producers that a consumer of a POINTWISE edge reads, and the inverse."""

from __future__ import annotations


def pointwise_producers(consumer: int, producers: int, consumers: int) -> range:
    """Return the producers one consumer reads on a POINTWISE edge; over all consumers every producer is read.

    Five cases in two formulas. As many producers as consumers, or more: consumer i reads the i-th even share of the
    producers (one, exactly `producers / consumers`, or that rounded down or up). Fewer: each consumer reads one
    producer, and producer p serves an even share of the consumers.

    Args:
        consumer: index in [0, consumers).
        producers: subtasks of the producing vertex, >= 1.
        consumers: subtasks of the consuming vertex, >= 1.
    Source: apache/flink 1.20 VertexInputInfoComputationUtils.computeVertexInputInfoForPointwise.

    >>> [list(pointwise_producers(i, 5, 3)) for i in range(3)]
    [[0], [1, 2], [3, 4]]
    >>> [list(pointwise_producers(i, 2, 5)) for i in range(5)]
    [[0], [0], [0], [1], [1]]
    """
    if producers >= consumers:
        return range(consumer * producers // consumers, (consumer + 1) * producers // consumers)
    producer = consumer * producers // consumers
    return range(producer, producer + 1)


def pointwise_consumers(producer: int, producers: int, consumers: int) -> range:
    """Return the consumers that read one producer on a POINTWISE edge: the inverse of `pointwise_producers`.

    >>> [list(pointwise_consumers(p, 2, 5)) for p in range(2)]
    [[0, 1, 2], [3, 4]]
    """
    if producers >= consumers:
        consumer = ((producer + 1) * consumers - 1) // producers
        return range(consumer, consumer + 1)
    return range(-(-producer * consumers // producers), -(-(producer + 1) * consumers // producers))
