"""Bounds how often one address may try wrong tokens."""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict
from dataclasses import dataclass, field

from rayflink.state.clock import Clock

__all__ = ["FailedTokens"]

MOST_ADDRESSES = 4_096
REMEMBERED = 32


@dataclass(slots=True)
class _Attempts:
    """The attempts of one address.

    Args:
        left: that it may make now.
        since: when that was so, seconds of the clock.
        recent: hashes of wrong tokens that were sent last.
    """

    left: float
    since: float
    recent: OrderedDict[bytes, None] = field(default_factory=OrderedDict)


class FailedTokens:
    """Counts wrong tokens by address. A program that repeats one wrong token guesses nothing, and is counted once.

    Args:
        most: different wrong tokens of one address in a minute.
        clock: for the minute.
    """

    def __init__(self, most: int, clock: Clock) -> None:
        self._most, self._clock = most, clock
        self._attempts: OrderedDict[str, _Attempts] = OrderedDict()

    def wait_s(self, address: str) -> int:
        """Return the seconds after which an address may try again; 0: now."""
        attempts = self._attempts.get(network_of(address))
        if attempts is None:
            return 0
        left = self._left(attempts)
        return 0 if left >= 1 else math.ceil((1 - left) * 60 / self._most)

    def add(self, address: str, digest: bytes) -> None:
        """Count a wrong token.

        Args:
            digest: its hash.
        """
        network = network_of(address)
        attempts = self._attempts.pop(network, None) or _Attempts(self._most, self._clock.monotonic())
        self._attempts[network] = attempts
        if len(self._attempts) > MOST_ADDRESSES:
            self._attempts.popitem(last=False)
        if digest in attempts.recent:
            attempts.recent.move_to_end(digest)
            return
        attempts.recent[digest] = None
        if len(attempts.recent) > REMEMBERED:
            attempts.recent.popitem(last=False)
        attempts.left, attempts.since = self._left(attempts) - 1, self._clock.monotonic()

    def _left(self, attempts: _Attempts) -> float:
        passed_s = self._clock.monotonic() - attempts.since
        return min(self._most, attempts.left + passed_s * self._most / 60)


def network_of(address: str) -> str:
    """Return the network that counts as one client: an address of IPv4, 64 bits of IPv6.

    A server that listens on `::` sees its clients of IPv4 as addresses of IPv6, all within the same 64 bits.

    >>> network_of("10.0.0.7"), network_of("2001:db8::7"), network_of("a socket")
    ('10.0.0.7', '2001:db8::', 'a socket')
    >>> network_of("::ffff:10.0.0.7")
    '10.0.0.7'
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
