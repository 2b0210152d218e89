"""Nexmark's events follow the published rules, and are the same however they are cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rayflink.connectors.nexmark import AUCTION, BID, PERSON, Nexmark

EVENTS = 100_000
RULES = Nexmark()


def made(kind: int, rules: Nexmark = RULES, start: int = 0, stop: int = EVENTS) -> pa.Table:
    columns = (rules.persons, rules.auctions, rules.bids)[kind]
    return pa.table(columns(rules.numbers(kind, start, stop)))


PERSONS, AUCTIONS, BIDS = made(PERSON), made(AUCTION), made(BID)


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_bids() -> None:
    assert [len(PERSONS), len(AUCTIONS), len(BIDS)] == [EVENTS // 50, EVENTS // 50 * 3, EVENTS // 50 * 46]
    assert list(RULES.kinds(np.arange(52))) == [0, 1, 1, 1, *[2] * 46, 0, 1]


def test_persons_and_auctions_are_numbered_without_gaps() -> None:
    assert PERSONS["id"].to_pylist() == list(range(1000, 1000 + len(PERSONS)))
    assert AUCTIONS["id"].to_pylist() == list(range(1000, 1000 + len(AUCTIONS)))


def test_time_goes_on_by_the_rate() -> None:
    times = BIDS["dateTime"].cast(pa.int64()).to_numpy()
    assert (np.diff(times) >= 0).all() and times[0] == RULES.base_ms
    assert times[-1] == RULES.base_ms + (EVENTS - 1) * 1000 // RULES.events_per_second


def test_half_of_the_bids_are_for_the_newest_hundredth_auction() -> None:
    numbers = RULES.numbers(BID, 0, EVENTS)
    newest = numbers // 50 * 3 + 2
    auction = BIDS["auction"].to_numpy() - 1000
    hot = auction == newest // 100 * 100
    assert 0.5 < hot.mean() < 0.53  # some of the others hit it by chance
    assert ((auction - newest <= 10) & (newest - auction <= 100))[newest >= 100].all()


def test_three_of_four_bidders_and_sellers_are_hot_and_differ() -> None:
    newest = RULES.numbers(BID, 0, EVENTS) // 50
    bidder = BIDS["bidder"].to_numpy() - 1000
    assert 0.74 < (bidder == newest // 100 * 100 + 1).mean() < 0.77
    assert bidder.min() >= 0 and (bidder <= newest + 10).all() and (newest - bidder < 1000).all()
    newest = RULES.numbers(AUCTION, 0, EVENTS) // 50
    assert 0.74 < (AUCTIONS["seller"].to_numpy() - 1000 == newest // 100 * 100).mean() < 0.77


def test_each_power_of_ten_of_a_price_is_as_likely() -> None:
    powers = np.log10(BIDS["price"].to_numpy() / 100)
    assert powers.min() >= 0 and powers.max() <= 6
    assert np.histogram(powers, 6, (0, 6))[0] / len(powers) == pytest.approx([1 / 6] * 6, abs=0.01)


def test_half_of_the_bids_come_by_a_hot_channel_and_most_others_name_their_number() -> None:
    hot = pc.is_in(BIDS["channel"], pa.array(["Google", "Facebook", "Baidu", "Apple"]))
    assert pc.mean(hot.cast(pa.int8())).as_py() == pytest.approx(0.5, abs=0.01)
    others = BIDS.filter(pc.invert(hot))["url"]
    assert pc.mean(pc.match_substring(others, "&channel_id=").cast(pa.int8())).as_py() == pytest.approx(0.9, abs=0.02)
    assert pc.all(
        pc.match_substring_regex(BIDS["url"], r"^https://www\.nexmark\.com/\w{3,4}/\w{3,4}/\w{3,4}/item")
    ).as_py()
    ids = pc.extract_regex(BIDS["url"], "channel_id=(?P<id>.*)$").combine_chunks().field("id")
    assert all(0 <= int(one) <= 1 << 31 for one in ids.to_pylist() if one)


@pytest.mark.parametrize(("kind", "fixed", "size"), [(PERSON, 8, 200), (AUCTION, 48, 500), (BID, 32, 100)])
def test_events_have_their_average_size(kind: int, fixed: int, size: int) -> None:
    table = (PERSONS, AUCTIONS, BIDS)[kind]
    texts = [table[field.name] for field in table.schema if field.type == pa.string()]
    told = [texts[-1]] if kind == BID else texts
    total = sum(pc.sum(pc.binary_length(text)).as_py() for text in told)
    assert total / len(table) + fixed == pytest.approx(size, rel=0.01)


def test_an_event_does_not_depend_on_those_that_are_made_with_it() -> None:
    for kind, whole in ((PERSON, PERSONS), (AUCTION, AUCTIONS), (BID, BIDS)):
        parts = [made(kind, RULES, start, min(start + 33_333, EVENTS)) for start in range(0, EVENTS, 33_333)]
        assert pa.concat_tables(parts).equals(whole)


def test_another_seed_gives_other_events() -> None:
    assert not made(BID, Nexmark(seed=1), 0, 1000)["price"].equals(made(BID, RULES, 0, 1000)["price"])


def test_letters_and_spaces_alone_need_no_quotes() -> None:
    for table in (PERSONS, AUCTIONS, BIDS):
        for field in table.schema:
            if field.type == pa.string():
                assert not pc.any(pc.match_substring_regex(table[field.name], r'[",\n\r]')).as_py()
