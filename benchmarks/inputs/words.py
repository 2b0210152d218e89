"""The text of W1: Zipf-distributed words, the same bytes on every machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

WORDS_A_LINE = 8
SEED = 20260101
_VOCABULARY = 5000
_EXPONENT = 1.2
_CHUNK = 1 << 20  # a multiple of WORDS_A_LINE, so that every chunk ends a line


def word_file(directory: Path, words: int) -> Path:
    """The file of the first `words` words, written unless it is there; a shorter file is a prefix of a longer one.

    Args:
        directory: where the file is kept; made if absent.
        words: a positive multiple of 8.
    Raises: ValueError: `words` is no such number.
    """
    if words <= 0 or words % WORDS_A_LINE:
        raise ValueError(f"words is {words}, wanted a positive multiple of {WORDS_A_LINE}: whole lines")
    path = directory / f"words-{words}-seed-{SEED}.txt"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        with partial.open("wb") as out:
            out.writelines(word_chunks(words))
        partial.replace(path)
    return path


def word_chunks(words: int, seed: int = SEED) -> Iterator[bytes]:
    """The text of `words` words w0..w4999, zipf(1.2) mod 5000, in pieces of at most 1 Mi words.

    The legacy `RandomState` draws, because numpy promises its stream for ever.
    """
    tokens = [f"w{i} ".encode() for i in range(_VOCABULARY)]
    padded = np.zeros((_VOCABULARY, max(map(len, tokens))), np.uint8)
    for row, token in zip(padded, tokens, strict=True):
        row[: len(token)] = list(token)
    draw = np.random.RandomState(seed)
    for start in range(0, words, _CHUNK):
        text = padded[draw.zipf(_EXPONENT, min(_CHUNK, words - start)) % _VOCABULARY]  # uint8[n, width]
        ends = text[WORDS_A_LINE - 1 :: WORDS_A_LINE]
        ends[ends == ord(" ")] = ord("\n")
        yield text[text != 0].tobytes()
