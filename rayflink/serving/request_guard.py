"""Decides who may send a request: tokens with roles, those without a token on this machine, and pages."""

from __future__ import annotations

from collections.abc import Sequence

from rayflink.state.clock import Clock

from .access_tokens import AccessToken, TokenFile, digest_of, matching_token
from .failed_tokens import FailedTokens
from .json_requests import Caller, Refusal, Role, Route
from .page_rules import RequestHead, ensure_host, ensure_own_page
from .server_settings import ServerSettings

__all__ = ["RequestGuard"]

HOW = "send the header `Authorization: Bearer TOKEN`"


class RequestGuard:
    """Admits requests, or refuses them.

    Args:
        settings: of the server.
        clock: for the rate of wrong tokens, and looks at the file of tokens.

    Raises:
        ConfigError: the file of tokens cannot be used.
    """

    def __init__(self, settings: ServerSettings, clock: Clock) -> None:
        self._settings = settings
        access = settings.access
        self._file = None if access.tokens_file is None else TokenFile(access.tokens_file, clock)
        self._fixed = [AccessToken.of("token", Role.SUBMIT, settings.token)] if settings.token else []
        self._failed = FailedTokens(access.most_failed_tokens, clock)
        self._hosts = {host.lower() for host in (*access.hosts, *([] if settings.is_any_address else [settings.host]))}

    def check(self, head: RequestHead, route: Route) -> Caller:
        """Return who sends a request.

        Raises:
            Refusal: with 401 where a token is missing or wrong, 403 where its role is too low or another site's page
                sends the request, 429 where its address has tried too many.
        """
        if route.role is Role.NONE:
            return Caller("", Role.NONE, head.address)
        access, origins = self._settings.access, self._settings.access.origins
        token = self._token(head)
        if token is not None:
            if access.hosts:
                ensure_host(head, self._hosts)
            if token.role < route.role:
                problem = f"the token {token.name} has the role {token.role.name}, wanted {route.role.name}"
                raise Refusal(403, f"{problem}; send another token")
            return Caller(token.name, token.role, head.address)
        role = self._settings.guest_role
        if role < route.role:
            refusal = Refusal(401, f"a token of the role {route.role.name} is missing; {HOW}")
            refusal.headers = {"www-authenticate": "Bearer"}
            raise refusal
        ensure_host(head, self._hosts)
        ensure_own_page(head, route.changes, origins)
        return Caller("", role, head.address)

    def _token(self, head: RequestHead) -> AccessToken | None:
        """Return the entry of the token that a request brings; None: it brings none.

        Raises:
            Refusal: it is wrong, or too many of this address were.
        """
        scheme, _, word = head.headers.get("authorization", "").partition(" ")
        word = word.strip()
        if scheme.lower() != "bearer" or not word:
            return None
        wait_s = self._failed.wait_s(head.address)
        if wait_s:
            refusal = Refusal(429, f"too many wrong tokens came from this address; try again in {wait_s} s")
            refusal.headers = {"retry-after": str(wait_s)}
            raise refusal
        token = matching_token(self._tokens(), word)
        if token is None:
            self._failed.add(head.address, digest_of(word))
            refusal = Refusal(401, f"the token is wrong; {HOW}")
            refusal.headers = {"www-authenticate": 'Bearer error="invalid_token"'}
            raise refusal
        return token

    def _tokens(self) -> Sequence[AccessToken]:
        return self._fixed if self._file is None else [*self._fixed, *self._file.tokens()]
