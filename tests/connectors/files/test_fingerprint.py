"""Files that are read, and read again to see whether they are the same."""

from __future__ import annotations

import io

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rayflink.connectors.files.fingerprint import Fingerprint, checksum

MANY = (Phase.explicit, Phase.reuse, Phase.generate)
BLOCK = bytes(range(256)) * 64 + b"end"


@settings(phases=MANY, deadline=None)
@given(st.integers(0, len(BLOCK) - 1), st.integers(0, 255))
def test_another_byte_is_found(at: int, byte: int) -> None:
    other = BLOCK[:at] + bytes([byte]) + BLOCK[at + 1 :]
    assert (checksum(other) == checksum(bytearray(BLOCK))) is (other == BLOCK)


@settings(phases=MANY, deadline=None)
@given(st.data())
def test_lines_that_change_places_are_found(data: st.DataObject) -> None:
    lines = [b"%d,%d\n" % (at, at * at) for at in range(2_000)]
    first, second = sorted(data.draw(st.lists(st.integers(0, 1_999), min_size=2, max_size=2, unique=True)))
    other = [*lines]
    other[first], other[second] = lines[second], lines[first]
    assert checksum(b"".join(other)) != checksum(b"".join(lines))


def test_blocks_are_looked_for_where_they_were() -> None:
    content = b"header\n" + BLOCK * 3
    seen = Fingerprint(7)
    for block in (BLOCK, BLOCK + BLOCK):
        seen.add(block)
    assert seen.is_in(io.BytesIO(content + b"more"))
    assert not seen.is_in(io.BytesIO(content[:-1]))
    assert not seen.is_in(io.BytesIO(b"longer header\n" + BLOCK * 3))
    assert not seen.is_in(io.BytesIO(content.replace(b"end", b"eND")))
    assert Fingerprint(7).is_in(io.BytesIO(b""))
