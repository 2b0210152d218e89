"""Buffers at the receiver: who owns, borrows, announces and gives back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.exchange.credits import ChannelCredit, CreditStatistics, FloatingPool
from rayflink.actors.exchange.exchange_statistics import PoolStatistics


@pytest.mark.spec("O10", "O14", "required", "X50", "trace")
def test_a_backlog_of_three_asks_for_three_floating_buffers() -> None:
    pool = FloatingPool(3)
    credit = ChannelCredit(2, pool)
    credit.backlog(3)
    assert credit.statistics() == CreditStatistics(2, 3, 0, 5, 3)
    assert credit.announce() == 3
    assert credit.announce() == 0


@pytest.mark.spec("M20", "O14", "listener", "O15", "X50", "listener")
def test_with_too_few_floating_buffers_the_channel_waits_for_the_next_one() -> None:
    pool = FloatingPool(3)
    other, credit = ChannelCredit(2, pool), ChannelCredit(2, pool)
    other.backlog(1)
    assert other.take()
    credit.backlog(3)
    assert credit.announce() == 2
    other.backlog(0)
    other.recycle()
    assert credit.announce() == 1
    assert pool.available == 0


@pytest.mark.spec("O15")
def test_a_channel_that_needs_no_more_leaves_the_buffer_to_the_next_one() -> None:
    pool = FloatingPool(1)
    holder, first, second = (ChannelCredit(1, pool) for _ in range(3))
    holder.backlog(1)
    holder.take()
    first.backlog(1)
    second.backlog(1)
    first.backlog(0)
    holder.backlog(0)
    holder.recycle()
    assert (first.announce(), second.announce()) == (0, 1)


@pytest.mark.spec("O15", "O14", "listener")
def test_a_channel_that_needs_more_than_the_returned_buffer_waits_for_the_next_one() -> None:
    pool = FloatingPool(2)
    holder, waiting = ChannelCredit(1, pool), ChannelCredit(1, pool)
    holder.backlog(2)
    assert holder.take() and holder.take()
    waiting.backlog(2)
    holder.backlog(0)
    for left in (1, 0):
        holder.recycle()
        assert (waiting.announce(), pool.available) == (1, 0)
        waiting.backlog(2)
        assert pool.statistics().waiting == left, "it waits once, while it needs more"


@pytest.mark.spec("O14", "listener")
def test_a_channel_that_has_waited_asks_the_pool_again() -> None:
    pool = FloatingPool(3)
    holder, waiting = ChannelCredit(1, pool), ChannelCredit(1, pool)
    holder.backlog(3)
    assert all(holder.take() for _ in range(3))
    waiting.backlog(1)
    holder.backlog(0)
    for _ in range(3):
        holder.recycle()
    assert (waiting.announce(), pool.available) == (1, 2)
    waiting.backlog(3)
    assert (waiting.announce(), pool.available) == (2, 0)


@pytest.mark.spec("O12")
def test_floating_buffers_are_used_before_the_channels_own() -> None:
    credit = ChannelCredit(2, FloatingPool(1))
    credit.backlog(1)
    assert credit.take()
    assert credit.statistics() == CreditStatistics(2, 0, 1, 3, 1)


@pytest.mark.spec("X51", "O12", "O13", "back")
def test_an_own_buffer_that_comes_back_sends_a_superfluous_floating_one_home() -> None:
    pool = FloatingPool(2)
    credit = ChannelCredit(1, pool)
    assert credit.take()
    credit.backlog(1)
    assert credit.announce() == 2
    credit.backlog(0)
    credit.recycle()
    assert credit.announce() == 0
    assert pool.available == 1
    assert credit.statistics() == CreditStatistics(1, 1, 0, 1, 0)


@pytest.mark.spec("X51", "O12", "O13", "back")
def test_an_own_buffer_that_comes_back_is_one_credit() -> None:
    credit = ChannelCredit(2, FloatingPool(0))
    credit.take()
    credit.recycle()
    assert credit.announce() == 1


@pytest.mark.spec("O13", "notified", "O14", "announced")
def test_credit_that_is_due_is_signalled_once_until_it_is_announced() -> None:
    signals: list[str] = []
    credit = ChannelCredit(2, FloatingPool(4), lambda: signals.append("due"))
    credit.backlog(3)
    assert signals == ["due"]
    credit.announce()
    credit.take()
    credit.backlog(0)
    assert signals == ["due"]
    credit.recycle()
    for _ in range(4):
        credit.take()
        credit.backlog(4)
    assert signals == ["due", "due"]


@pytest.mark.parametrize("exclusive", [1, 2, 3, 8])
def test_a_free_buffer_is_announced_once_the_sender_has_less_than_half_left(exclusive: int) -> None:
    signals: list[str] = []
    credit = ChannelCredit(exclusive, FloatingPool(0), lambda: signals.append("due"))
    left, announced = exclusive, []
    for _ in range(4 * exclusive):
        assert left, "the sender is never left without credit while buffers are free"
        left -= 1
        credit.take()
        credit.recycle()
        if signals:
            assert 2 * left < exclusive
            announced.append(credit.announce())
            left += announced[-1]
            signals.clear()
        else:
            assert 2 * left >= exclusive
    assert set(announced) == {exclusive // 2 + 1}


def test_without_a_free_buffer_nothing_can_be_taken() -> None:
    credit = ChannelCredit(1, FloatingPool(0))
    assert credit.take()
    assert not credit.take()


@pytest.mark.spec("O16", "released")
def test_a_released_channel_gives_everything_back_and_asks_for_nothing() -> None:
    pool = FloatingPool(3)
    credit = ChannelCredit(1, pool)
    credit.backlog(2)
    credit.take()
    credit.release()
    assert (pool.available, credit.announce()) == (2, 0)
    credit.recycle()
    credit.backlog(9)
    assert (pool.available, credit.announce()) == (3, 0)
    credit.release()
    assert pool.available == 3


@pytest.mark.spec("O15")
def test_a_released_channel_waits_no_longer() -> None:
    pool = FloatingPool(1)
    holder, gone = ChannelCredit(1, pool), ChannelCredit(1, pool)
    holder.backlog(1)
    holder.take()
    gone.backlog(1)
    assert pool.statistics() == PoolStatistics(size=1, available=0, waiting=1)
    gone.release()
    assert pool.statistics() == PoolStatistics(size=1, available=0, waiting=0)
    holder.backlog(0)
    holder.recycle()
    assert (pool.available, gone.announce()) == (1, 0)


@pytest.mark.parametrize("make", [lambda: FloatingPool(-1), lambda: ChannelCredit(0, FloatingPool(0))])
def test_impossible_sizes_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="must be >= "):
        make()


@pytest.mark.spec("O08", "O11", "M17", "exclusive", "O15")
@given(
    st.integers(1, 3),
    st.integers(0, 4),
    st.integers(1, 4),
    st.lists(st.tuples(st.sampled_from(["send", "recycle", "backlog", "announce", "release"]), st.integers(0, 5))),
)
def test_whatever_happens_no_buffer_is_lost_or_made_up(
    exclusive: int, floating: int, channels: int, story: list[tuple[str, int]]
) -> None:
    pool = FloatingPool(floating)
    credits = [ChannelCredit(exclusive, pool) for _ in range(channels)]
    granted, queued, backlog, released = [exclusive] * channels, [0] * channels, [0] * channels, [False] * channels
    for number, (what, argument) in enumerate(story):
        i = number % channels
        credit = credits[i]
        if what == "send" and granted[i] and not released[i]:
            granted[i] -= 1
            assert credit.take(), "announced credit is always backed by a buffer"
            queued[i] += 1
            backlog[i] = argument
            credit.backlog(argument)
        elif what == "recycle" and queued[i]:
            queued[i] -= 1
            credit.recycle()
        elif what == "backlog" and not released[i]:
            backlog[i] = argument
            credit.backlog(argument)
        elif what == "announce":
            granted[i] += credit.announce()
        elif what == "release" and argument == 0:
            released[i] = True
            credit.release()
        statistics = [c.statistics() for c in credits]
        borrowed = sum(c.floating + sum(c_._taken) for c, c_ in zip(statistics, credits, strict=True))
        assert pool.available + borrowed == floating
        for j, own in enumerate(statistics):
            if not released[j]:
                assert own.exclusive + own.taken - sum(credits[j]._taken) == exclusive
                assert granted[j] + own.unannounced == own.exclusive + own.floating
                wanted = own.required - own.exclusive - own.floating
                assert wanted <= 0 or pool.available == 0, "a channel in need leaves no free buffer in the pool"
