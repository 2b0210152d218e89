"""Models that tests name by their paths."""

from __future__ import annotations

import asyncio

import pyarrow.compute as pc


def lengths(words):
    return {"size": pc.utf8_length(words), "first": pc.utf8_slice_codeunits(words, 0, 1), "unused": None}


def doubled(numbers):
    return pc.multiply(numbers, 2)


def wrong(words):
    return {"size": pc.utf8_length(words)}


class Prefixed:
    """A model with options."""

    def __init__(self, options):
        self.prefix = options["prefix"]

    def predict(self, words):
        return self.prefix + words


async def awaited(word):
    await asyncio.sleep(0)
    return None if word is None else len(word), (word or "")[:1]


not_callable = 3
