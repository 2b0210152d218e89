"""The words of W1 are the same bytes everywhere."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from benchmarks.inputs.words import word_chunks, word_file


def test_the_first_words_are_fixed_for_ever() -> None:
    text = b"".join(word_chunks(8_000))
    assert hashlib.sha256(text).hexdigest() == "09fb74617320417cbb23bf337abddd3f5ddf5df3d67fc4d53bb22ca701f26e7c"


def test_every_line_holds_eight_words_of_the_vocabulary() -> None:
    lines = b"".join(word_chunks(8_000)).decode().splitlines()
    assert len(lines) == 1_000
    assert {len(line.split(" ")) for line in lines} == {8}
    assert {word for line in lines for word in line.split(" ")} <= {f"w{i}" for i in range(5_000)}


def test_a_shorter_file_is_a_prefix_of_a_longer_one(tmp_path: Path) -> None:
    short, long = (word_file(tmp_path, words).read_bytes() for words in (800, 8_000))
    assert long.startswith(short) and len(short) < len(long)


def test_chunks_do_not_show_in_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = b"".join(word_chunks(8_000))
    monkeypatch.setattr("benchmarks.inputs.words._CHUNK", 80)
    assert b"".join(word_chunks(8_000)) == whole


def test_another_seed_gives_other_words() -> None:
    assert b"".join(word_chunks(800, seed=1)) != b"".join(word_chunks(800, seed=2))


def test_a_file_is_written_once_and_leaves_no_part_behind(tmp_path: Path) -> None:
    path = word_file(tmp_path, 800)
    path.write_text("kept")
    assert word_file(tmp_path, 800).read_text() == "kept"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("words", [0, -8, 7, 801])
def test_words_that_fill_no_whole_lines_are_refused(tmp_path: Path, words: int) -> None:
    with pytest.raises(ValueError, match=f"words is {words}, wanted a positive multiple of 8"):
        word_file(tmp_path, words)
