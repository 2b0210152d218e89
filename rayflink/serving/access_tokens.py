"""The tokens that open a server, each with a name and a role, in a file that may change while the server runs."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field

from rayflink.common.errors import ConfigError
from rayflink.state.clock import Clock

from .json_requests import Role

__all__ = ["AccessToken", "TokenFile", "matching_token", "parse_tokens"]

log = logging.getLogger(__name__)
LEAST_CHARACTERS = 16
LOOK_EVERY_S = 1.0
"""Seconds between two looks whether the file has changed."""
MOST_BYTES = 1 << 20
ROLES = {role.name: role for role in (Role.READ, Role.OPERATE, Role.SUBMIT)}
FORM = "lines NAME ROLE TOKEN, with READ, OPERATE or SUBMIT, and at least 16 characters or sha256:HEX"
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_DIGEST = re.compile(r"sha256:([0-9a-fA-F]{64})")


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token, of which only a hash is in memory.

    Args:
        name: of whoever has it.
        role: the right that it gives.
        digest: SHA-256 of the token.
    """

    name: str
    role: Role
    digest: bytes = field(repr=False)

    @classmethod
    def of(cls, name: str, role: Role, token: str) -> AccessToken:
        """Return the entry of a token."""
        return cls(name, role, digest_of(token))


def digest_of(token: str) -> bytes:
    """Return the hash of a token. Tokens are random, so one that takes long to compute would protect no better."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def matching_token(tokens: Sequence[AccessToken], presented: str) -> AccessToken | None:
    """Return the entry of a token; the time that this takes does not show how much of it is right, nor whose it is.

    >>> tokens = [AccessToken.of("ann", Role.READ, "one of ann"), AccessToken.of("bob", Role.SUBMIT, "one of bob")]
    >>> matching_token(tokens, "one of bob").name, matching_token(tokens, "one of eve")
    ('bob', None)
    """
    digest, match = digest_of(presented), None
    for token in tokens:
        if hmac.compare_digest(token.digest, digest):
            match = token
    return match


def parse_tokens(content: str) -> tuple[list[AccessToken], list[str], bool]:
    """Read the lines of a file of tokens.

    >>> tokens, problems, is_secret = parse_tokens("# people\\nann READ 0123456789abcdef")
    >>> tokens[0].name, tokens[0].role.name, problems, is_secret
    ('ann', 'READ', [], True)

    Returns: the tokens; what is wrong with other lines, without their content; whether a token stands there plainly.
    """
    tokens: list[AccessToken] = []
    problems, is_secret = [], False
    for number, line in enumerate(content.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        problem = _problem(words, {token.name for token in tokens})
        if problem:
            problems.append(f"line {number} {problem}")
            is_secret = is_secret or not words[-1].startswith("sha256:")
            continue
        name, role, token = words
        hashed = _DIGEST.fullmatch(token)
        is_secret = is_secret or hashed is None
        digest = digest_of(token) if hashed is None else bytes.fromhex(hashed[1])
        tokens.append(AccessToken(name, ROLES[role.upper()], digest))
    return tokens, problems, is_secret


def _problem(words: Sequence[str], names: set[str]) -> str:
    if len(words) != 3:
        return f"has {len(words)} words"
    name, role, token = words
    if _NAME.fullmatch(name) is None:
        return "begins with no name of letters, digits and ._@-"
    if name in names:
        return f"has the name {name} of another line"
    if role.upper() not in ROLES:
        return "has another role than READ, OPERATE and SUBMIT"
    if token.startswith("sha256:"):
        return "" if _DIGEST.fullmatch(token) else "has a hash that is not of 64 hex digits"
    return "" if len(token) >= LEAST_CHARACTERS else f"has a token of less than {LEAST_CHARACTERS} characters"


class TokenFile:
    """The tokens of a file, read again when it changes. A file that cannot be used opens the server for no token.

    Args:
        path: of the file. It must belong to this user or to root, and be of mode 600, or 644 if all tokens are hashed.
        clock: for the time between two looks.

    Raises:
        ConfigError: it cannot be used.
    """

    def __init__(self, path: str, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._state, self._look_at = _file_state(path), clock.monotonic() + LOOK_EVERY_S
        self._tokens, problems = _read(path)
        if problems:
            raise _refusal(path, "; ".join(problems))

    def tokens(self) -> Sequence[AccessToken]:
        """Return the tokens that are valid now."""
        now = self._clock.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY_S
            state = _file_state(self._path)
            if state != self._state:
                self._state = state
                self._read_again()
        return self._tokens

    def _read_again(self) -> None:
        try:
            self._tokens, problems = _read(self._path)
        except ConfigError as error:
            self._tokens = []
            log.error("no token is valid until the file of tokens can be read", exc_info=error)
            return
        if problems:
            log.error("lines of the file of tokens are left out", extra={"problem": "; ".join(problems)})
        log.info("file of tokens read", extra={"tokens": len(self._tokens)})


def _file_state(path: str) -> tuple[int, ...]:
    """Return what differs when a file has changed; () where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read(path: str) -> tuple[list[AccessToken], list[str]]:
    """Return the tokens of a file, and what is wrong with lines of it.

    Raises:
        ConfigError: it cannot be read, or others may read or write it.
    """
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _refusal(path, error.strerror or str(error)) from error
    if len(data) > MOST_BYTES:
        raise _refusal(path, f"more than {MOST_BYTES} bytes")
    tokens, problems, is_secret = parse_tokens(data.decode("utf-8", "surrogateescape"))
    if status.st_uid not in (os.geteuid(), 0):
        raise _refusal(path, f"a file of the user {status.st_uid}")
    forbidden = 0o077 if is_secret else 0o022
    if stat.S_IMODE(status.st_mode) & forbidden:
        raise _refusal(path, f"mode {stat.S_IMODE(status.st_mode):o}, by which others may read or write it")
    return tokens, problems


def _refusal(path: str, problem: str) -> ConfigError:
    remedy = f"run chmod 600 {path} as its owner, and look at its lines"
    return ConfigError("rest.auth.tokens-file", problem, f"in {path} {FORM}, that only this user can read", remedy)
