"""Events of Nexmark: persons who sell and bid, their auctions, and bids, each by its number.

What an event holds depends on its number and the seed alone, so parts are made anywhere and again.

Source: the rules of Apache Beam's Nexmark suite, as nexmark/nexmark has them too; but there bidders are numbered a
thousand higher than persons.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.source import EnumeratorContext, PendingSplits, SplitEnumerator

from .generator import DataGeneratorSource, NumberSplit
from .seeded_random import drawn

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

PERSON, AUCTION, BID = range(3)
_FIRST_ID, _FIRST_CATEGORY, _CATEGORIES = 1000, 10, 5
_LEAD = 10
"""Number of persons and auctions that are named before their own events."""
_HOT = 100
"""Number of persons and auctions of which one is hot."""
_CHANNELS = 10_000
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_FIRST_NAMES = "Peter,Paul,Luke,John,Saul,Vicky,Kate,Julie,Sarah,Deiter,Walter".split(",")
_LAST_NAMES = "Shultz,Abrams,Spencer,White,Bartels,Walton,Smith,Jones,Noris".split(",")
_TEXTS = {
    "names": [f"{first} {last}" for first in _FIRST_NAMES for last in _LAST_NAMES],
    "digits": [f"{number:04}" for number in range(10_000)],
    "cities": "Phoenix,Los Angeles,San Francisco,Boise,Portland,Bend,Redmond,Seattle,Kent,Cheyenne".split(","),
    "states": "AZ,CA,ID,OR,WA,WY".split(","),
}
_POOL = 1 << 14
_TEXT_BYTES = 1 << 20
_SAME_LENGTH = 32
_BID_FIELDS_BYTES = 32
"""Size of a bid without `extra`, as the rules count it."""


@dataclass(frozen=True)
class Nexmark:
    """The rules with their numbers.

    Args:
        proportions: of persons, auctions and bids, which follow each other in this order.
        events_per_second: of event time.
        base_ms: time of the first event, in epoch milliseconds.
        sizes: average bytes of a person, an auction and a bid.
        hot: one auction, seller, bidder in this many is not hot.
        active_people: of whom sellers and bidders are.
        auctions_in_flight: of which bids are.
        seed: another one gives other events.

    >>> Nexmark().bids(Nexmark().numbers(BID, 0, 50))["auction"].null_count
    0
    """

    proportions: tuple[int, int, int] = (1, 3, 46)
    events_per_second: int = 10_000
    base_ms: int = 1_436_918_400_000
    sizes: tuple[int, int, int] = (200, 500, 100)
    hot: tuple[int, int, int] = (2, 4, 4)
    active_people: int = 1000
    auctions_in_flight: int = 100
    seed: int = 0

    @property
    def epoch(self) -> int:
        """Return the number of events after which the kinds repeat."""
        return sum(self.proportions)

    def kinds(self, numbers: Numbers) -> NDArray[np.int32]:
        """Return the kind of each event, PERSON, AUCTION or BID: int32[n]."""
        import numpy

        persons, auctions, _ = self.proportions
        place = numbers % self.epoch
        kinds: NDArray[np.int32] = (place >= persons).astype(numpy.int32)
        kinds += place >= persons + auctions
        return kinds

    def numbers(self, kind: int, start: int, stop: int) -> Numbers:
        """Return the numbers of a kind's events among those from `start` to below `stop`."""
        import numpy

        every = numpy.arange(start, stop, dtype=numpy.int64)
        numbers: Numbers = every[self.kinds(every) == kind]
        return numbers

    def times(self, numbers: Numbers) -> Numbers:
        """Return the times in epoch milliseconds."""
        times: Numbers = numbers * 1000 // self.events_per_second + self.base_ms
        return times

    # What an event holds

    def persons(self, numbers: Numbers) -> dict[str, pyarrow.Array]:
        """Return the columns of persons."""
        import pyarrow
        from pyarrow import compute

        draw = _Draw(numbers, self.seed, "person")
        groups = [draw.of(_texts("digits"), f"card{group}") for group in range(4)]
        user, host = draw.of(_pool("email", 3, 7, " ", True), "user"), draw.of(_pool("email", 3, 5, " ", True), "host")
        columns = {
            "id": pyarrow.array(self._last_person(numbers) + _FIRST_ID),
            "name": draw.of(_texts("names"), "name"),
            "emailAddress": compute.binary_join_element_wise(user, "@", host, ".com", ""),
            "creditCard": compute.binary_join_element_wise(*groups, " "),
            "city": draw.of(_texts("cities"), "city"),
            "state": draw.of(_texts("states"), "state"),
            "dateTime": _stamps(self.times(numbers)),
        }
        return {**columns, "extra": self._extra(PERSON, draw, columns, 8)}

    def auctions(self, numbers: Numbers) -> dict[str, pyarrow.Array]:
        """Return the columns of auctions."""
        import numpy
        import pyarrow

        draw = _Draw(numbers, self.seed, "auction")
        times = self.times(numbers)
        first_bid = draw.price("initialBid")
        ahead = self.auctions_in_flight * self.epoch // max(self.proportions[AUCTION], 1)
        length = 1 + draw.below(numpy.maximum(2 * (self.times(numbers + ahead) - times), 1), "expires")
        columns = {
            "id": pyarrow.array(self._last_auction(numbers) + _FIRST_ID),
            "itemName": draw.of(_pool("itemName", 3, 20, " ", True), "itemName"),
            "description": draw.of(_pool("description", 3, 100, " ", True), "description"),
            "initialBid": pyarrow.array(first_bid),
            "reserve": pyarrow.array(first_bid + draw.price("reserve")),
            "dateTime": _stamps(times),
            "expires": _stamps(times + length),
            "seller": pyarrow.array(self._person(numbers, draw, self.hot[1], 0)),
            "category": pyarrow.array(_FIRST_CATEGORY + draw.below(_CATEGORIES, "category")),
        }
        return {**columns, "extra": self._extra(AUCTION, draw, columns, 48)}

    def bids(self, numbers: Numbers) -> dict[str, pyarrow.Array]:
        """Return the columns of bids."""
        import numpy
        import pyarrow

        draw = _Draw(numbers, self.seed, "bid")
        last = self._last_auction(numbers)
        first = numpy.maximum(last - self.auctions_in_flight, 0)
        hot = draw.below(self.hot[0], "hot auction") > 0
        auction = numpy.where(hot, last // _HOT * _HOT, first + draw.below(last - first + 1 + _LEAD, "auction"))
        channels, urls = _channels()
        one_of_many = len(_HOT_CHANNELS) + draw.below(_CHANNELS, "channel")
        is_hot = draw.below(2, "hot channel") > 0
        channel = pyarrow.array(numpy.where(is_hot, draw.below(len(_HOT_CHANNELS), "one of the hot"), one_of_many))
        spare = max(self.sizes[BID] - _BID_FIELDS_BYTES, 0)
        shortest, longest = _extra_bounds(spare)
        return {
            "auction": pyarrow.array(auction + _FIRST_ID),
            "bidder": pyarrow.array(self._person(numbers, draw, self.hot[2], 1)),
            "price": pyarrow.array(draw.price("price")),
            "channel": channels.take(channel),
            "url": urls.take(channel),
            "dateTime": _stamps(self.times(numbers)),
            "extra": draw.of(_pool("extra", shortest, longest, "", False), "extra"),
        }

    # Persons and auctions that there are

    def _last_person(self, numbers: Numbers) -> Numbers:
        """Return the person of the event, or the last one before it, from 0."""
        import numpy

        persons = self.proportions[PERSON]
        last_persons: Numbers = numbers // self.epoch * persons + numpy.minimum(numbers % self.epoch, persons - 1)
        return last_persons

    def _last_auction(self, numbers: Numbers) -> Numbers:
        """Return the auction of the event, or the last one before it, from 0."""
        import numpy

        persons, auctions, _ = self.proportions
        place = numpy.clip(numbers % self.epoch - persons, -1, auctions - 1)
        last_auctions: Numbers = numbers // self.epoch * auctions + place
        return last_auctions

    def _person(self, numbers: Numbers, draw: _Draw, hot: int, place: int) -> Numbers:
        """Return a seller or bidder: the hot one of the newest hundred, or any that is active."""
        import numpy

        last = self._last_person(numbers)
        active = numpy.minimum(last + 1, self.active_people)
        any_one = last + 1 - active + draw.below(active + _LEAD, "person")
        is_hot = draw.below(hot, "hot person") > 0
        persons: Numbers = numpy.where(is_hot, last // _HOT * _HOT + place, any_one) + _FIRST_ID
        return persons

    def _extra(self, kind: int, draw: _Draw, columns: dict[str, Any], fixed: int) -> pyarrow.Array:
        """Return letters that fill an event up to its size, a fifth of them more or less."""
        import numpy
        from pyarrow import compute, types

        size = numpy.full(len(draw.numbers), fixed, dtype=numpy.int64)
        for column in columns.values():
            if types.is_string(column.type):
                size += compute.binary_length(column).to_numpy()
        shortest, longest = _extra_bounds(numpy.maximum(self.sizes[kind] - size, 0))
        lengths = shortest + draw.below(longest - shortest, "extra length")
        return _of_lengths(self.sizes[kind] * 6 // 5).take(
            _column(lengths * _SAME_LENGTH + draw.below(_SAME_LENGTH, "extra"))
        )


class _Draw:
    """Random columns of events, one for each name.

    Args:
        numbers: of the events.
        about: one of the kinds.
    """

    def __init__(self, numbers: Numbers, seed: int, about: str) -> None:
        self.numbers, self._seed, self._about = numbers, seed, about

    def _drawn(self, name: str) -> NDArray[np.uint64]:
        return drawn(self.numbers, zlib.crc32(f"{self._seed} {self._about} {name}".encode()))

    def below(self, bound: int | NDArray[np.int64], name: str) -> Numbers:
        """Return a number from 0 to below a limit, or below one limit for each."""
        import numpy

        values: Numbers = (self._drawn(name) % numpy.asarray(bound).astype(numpy.uint64)).astype(numpy.int64)
        return values

    def price(self, name: str) -> Numbers:
        """Return 10 to the power of up to six, in hundredths; each power is as likely."""
        import numpy

        part = self._drawn(name).astype(numpy.float64) / 2.0**64
        prices: Numbers = numpy.rint(numpy.power(10.0, part * 6) * 100).astype(numpy.int64)
        return prices

    def of(self, values: pyarrow.Array, name: str) -> pyarrow.Array:
        """Return one of the values for each event."""
        return values.take(_column(self.below(len(values), name)))


def _column(values: NDArray[Any] | list[str]) -> pyarrow.Array:
    import pyarrow

    return pyarrow.array(values)


def _extra_bounds(spare: int | NDArray[np.int64]) -> tuple[Any, Any]:
    """Return the least length, and one more than the greatest."""
    import numpy

    delta = numpy.rint(numpy.asarray(spare) * 0.2).astype(numpy.int64)
    return spare - delta, numpy.maximum(spare + delta, spare - delta + 1)


def _stamps(times: Numbers) -> pyarrow.Array:
    import pyarrow

    return pyarrow.array(times).cast(pyarrow.timestamp("ms"))


@lru_cache
def _texts(name: str) -> pyarrow.Array:
    return _column(_TEXTS[name])


@lru_cache(maxsize=8)
def _text(special: str) -> NDArray[np.uint8]:
    """Return the letters that strings are cut from; one in 13 is the special one, where there is one: uint8[2**20]."""
    import numpy

    positions = numpy.arange(_TEXT_BYTES, dtype=numpy.int64)
    letters: NDArray[np.uint8] = (drawn(positions, zlib.crc32(b"letters")) % numpy.uint64(26)).astype(numpy.uint8)
    letters += ord("a")
    if special:
        letters[drawn(positions, zlib.crc32(b"special")) % numpy.uint64(13) == 0] = ord(special)
    return letters


@lru_cache(maxsize=32)
def _pool(name: str, shortest: int, longest: int, special: str, trimmed: bool) -> pyarrow.Array:
    """Return random strings of at least `shortest` and less than `longest` letters before they are trimmed."""
    import numpy
    from pyarrow import compute

    positions = numpy.arange(_POOL, dtype=numpy.int64)
    seed = zlib.crc32(f"{name} {shortest} {longest}".encode())
    lengths = shortest + (drawn(positions, seed) % numpy.uint64(longest - shortest)).astype(numpy.int64)
    starts = (drawn(positions, seed + 1) % numpy.uint64(_TEXT_BYTES - longest)).astype(numpy.int64)
    strings = _pieces(_text(special), starts, lengths)
    return compute.utf8_trim_whitespace(strings) if trimmed else strings


@lru_cache(maxsize=8)
def _of_lengths(longest: int) -> pyarrow.Array:
    """Return random strings of each length from 0, `_SAME_LENGTH` of them each."""
    import numpy

    lengths = numpy.repeat(numpy.arange(longest + 2), _SAME_LENGTH)
    starts = drawn(numpy.arange(len(lengths), dtype=numpy.int64), longest) % numpy.uint64(_TEXT_BYTES - longest - 2)
    return _pieces(_text(""), starts.astype(numpy.int64), lengths)


@lru_cache(maxsize=1)
def _channels() -> tuple[pyarrow.Array, pyarrow.Array]:
    """Return names and addresses of the channels, the hot ones first; nine in ten of the others have their number
    there.
    """
    folders = _pool("url", 3, 5, "_", False).to_pylist()
    names, urls = [*_HOT_CHANNELS, *(f"channel-{number}" for number in range(_CHANNELS))], []
    for index in range(len(names)):
        first, second, third = (
            folders[3 * index % _POOL],
            folders[(3 * index + 1) % _POOL],
            folders[(3 * index + 2) % _POOL],
        )
        urls.append(f"https://www.nexmark.com/{first}/{second}/{third}/item.htm?query=1")
    for channel in range(_CHANNELS):
        if zlib.crc32(b"%d" % channel) % 10:
            urls[len(_HOT_CHANNELS) + channel] += f"&channel_id={_reversed(channel)}"
    return _column(names), _column(urls)


def _reversed(number: int) -> int:
    """Return its 32 bits backwards, without the sign."""
    backwards = int(f"{number:032b}"[::-1], 2)
    return backwards if backwards < 1 << 31 else (1 << 32) - backwards


def _pieces(text: NDArray[np.uint8], starts: Numbers, lengths: Numbers) -> pyarrow.Array:
    """Return parts of a string."""
    import numpy
    import pyarrow

    ends = numpy.cumsum(lengths)
    offsets = numpy.concatenate([[0], ends]).astype(numpy.int32)
    places = numpy.arange(int(ends[-1]) if len(ends) else 0) + numpy.repeat(starts - offsets[:-1], lengths)
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(text[places])]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(lengths), buffers)


class NexmarkNumbers(DataGeneratorSource):
    """The numbers of events, assigned to the readers in turn, so that all are at the same time.

    Args:
        count: how many; None: no end.
        per_second: of all readers together; None: as fast as they are taken.
    """

    def __init__(self, count: int | None, per_second: float | None) -> None:
        super().__init__(None, count, per_second)
        self._stop = count

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        if self._stop is None:
            return super().create_enumerator(ctx)
        readers = ctx.current_parallelism()
        turns = [range(first, self._stop, readers) for first in range(min(readers, self._stop))]
        return PendingSplits(ctx, [NumberSplit(turn[0], turn[-1] + 1, readers) for turn in turns])


__all__ = ["AUCTION", "BID", "PERSON", "Nexmark", "NexmarkNumbers"]
