"""Random numbers by number and seed, whole columns at once: the same ones on every machine, in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def drawn(numbers: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Return a random number for each: uint64[n].

    Source: the finaliser of SplitMix64.
    """
    import numpy

    with numpy.errstate(over="ignore"):
        mixed = numbers.astype(numpy.uint64) + numpy.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
        mixed = (mixed + numpy.uint64(1)) * numpy.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        random_numbers: NDArray[np.uint64] = mixed ^ (mixed >> numpy.uint64(31))
        return random_numbers


__all__ = ["drawn"]
