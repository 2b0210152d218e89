"""Who is answered: tokens and their file, roles, wrong tokens, pages of browsers."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.serving.access_tokens import TokenFile, matching_token, parse_tokens
from rayflink.serving.answer_headers import accepts
from rayflink.serving.failed_tokens import MOST_ADDRESSES, FailedTokens
from rayflink.serving.json_requests import Refusal, Role, Route
from rayflink.serving.page_rules import RequestHead, cors_headers, host_name, preflight_headers
from rayflink.serving.request_guard import RequestGuard
from rayflink.serving.rest_settings import rest_settings
from rayflink.serving.server_settings import AccessSettings, ServerSettings, is_loopback
from rayflink.state.clock import ManualClock

TOKEN, OTHER = "a-token-of-ann-0001", "a-token-of-bob-0002"
OWN = {"host": "127.0.0.1:8081"}
ROUTES = {
    Role.NONE: Route("GET", "/", dict, Role.NONE),
    Role.READ: Route("GET", "/jobs", dict, Role.READ),
    Role.OPERATE: Route("PATCH", "/jobs/{job}", dict, Role.OPERATE),
    Role.SUBMIT: Route("POST", "/rayflink/jobs", dict, Role.SUBMIT),
}


def guard(host: str = "127.0.0.1", token: str | None = TOKEN, guest: Role | None = Role.OPERATE, **access: object):
    server = ServerSettings(host, 8081, token, access=AccessSettings(guest_role=guest, **access))
    return RequestGuard(server, ManualClock())


def status(guarded: RequestGuard, role: Role, headers: dict[str, str], method: str = "", address: str = "::1") -> int:
    try:
        guarded.check(RequestHead(method or ROUTES[role].method, "http", headers, address), ROUTES[role])
    except Refusal as refusal:
        return refusal.status
    return 200


def lines(path: Path, content: str, mode: int = 0o600) -> str:
    path.write_text(content)
    path.chmod(mode)
    return str(path)


# tokens


def test_each_token_gives_the_rights_of_its_role(tmp_path):
    hashed = hashlib.sha256(OTHER.encode()).hexdigest()
    path = lines(tmp_path / "tokens", f"# people\nann read {TOKEN}\n\nbob SUBMIT sha256:{hashed}\n")
    guarded = guard("0.0.0.0", None, tokens_file=path)
    seen = {
        name: [status(guarded, role, {"authorization": f"Bearer {token}", "host": "any"}) for role in Role]
        for name, token in (("ann", TOKEN), ("bob", OTHER), ("eve", "x" * 20))
    }
    assert seen == {"ann": [200, 200, 403, 403], "bob": [200] * 4, "eve": [200, 401, 401, 401]}
    head = RequestHead("GET", "http", {"authorization": f"bearer {OTHER}"}, "10.0.0.1")
    caller = guarded.check(head, ROUTES[Role.READ])
    assert (caller.name, caller.role, caller.address) == ("bob", Role.SUBMIT, "10.0.0.1")


@pytest.mark.parametrize(
    ("host", "guest", "rights"),
    [
        ("127.0.0.1", Role.OPERATE, [200, 200, 200, 401]),
        ("::1", Role.READ, [200, 200, 401, 401]),
        ("localhost", Role.NONE, [200, 401, 401, 401]),
        ("0.0.0.0", Role.OPERATE, [200, 401, 401, 401]),
    ],
)
def test_without_a_token_only_clients_of_this_machine_have_rights_and_none_submits(host, guest, rights):
    guarded = guard(host, guest=guest)
    assert [status(guarded, role, OWN) for role in Role] == rights


def test_the_options_say_who_is_answered(tmp_path):
    path = lines(tmp_path / "tokens", f"ann READ {TOKEN}")
    options = {"rest.auth.loopback-role": "read", "rest.auth.tokens-file": path, "rest.allowed-hosts": "proxy;x.org"}
    guarded = RequestGuard(rest_settings(Configuration.from_dict(options), "127.0.0.1", 0, None), ManualClock())
    assert [status(guarded, role, {"host": "proxy"}) for role in Role] == [200, 200, 401, 401]
    with pytest.raises(ConfigError, match="security.ssl.rest.keystore"):
        rest_settings(Configuration.from_dict({"security.ssl.rest.enabled": "true"}), "::1", 0, None)
    for more in ({}, {"security.ssl.rest.truststore": "a.pem"}):
        with pytest.raises(ConfigError, match=r"security.ssl.rest"):
            demanded = {"security.ssl.rest.authentication-enabled": "true", **more}
            rest_settings(Configuration.from_dict(demanded), "::1", 0, None)
    with pytest.raises(ConfigError, match=r"without \*"):
        rest_settings(Configuration.from_dict({"rest.cors.allowed-origins": "*"}), "::1", 0, None)


@pytest.mark.parametrize(
    ("content", "mode", "problem"),
    [
        (f"ann READ {TOKEN}", 0o640, "mode 640"),
        (f"ann READ {TOKEN}", 0o604, "mode 604"),
        (f"ann READ sha256:{'0' * 64}", 0o622, "mode 622"),
        ("ann READ", 0o600, "line 1 has 2 words"),
        ("ann READ short", 0o600, "line 1 has a token of less than 16"),
        (f"ann ADMIN {TOKEN}", 0o600, "line 1 has another role"),
        (f"ann READ {TOKEN}\nann READ {OTHER}", 0o600, "line 2 has the name ann of another line"),
        ("ann READ sha256:abc", 0o600, "not of 64 hex digits"),
        (f"a;b READ {TOKEN}", 0o600, "begins with no name"),
    ],
)
def test_a_file_of_tokens_that_is_wrong_is_refused_without_showing_a_token(tmp_path, content, mode, problem):
    path = lines(tmp_path / "tokens", content, mode)
    with pytest.raises(ConfigError, match=problem) as refused:
        TokenFile(path, ManualClock())
    assert TOKEN not in str(refused.value) and "chmod 600" in str(refused.value)


def test_hashed_tokens_may_be_read_by_others_and_a_missing_file_is_named(tmp_path):
    path = lines(tmp_path / "tokens", f"ann READ sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}", 0o644)
    assert matching_token(TokenFile(path, ManualClock()).tokens(), TOKEN).name == "ann"
    with pytest.raises(ConfigError, match="No such file"):
        TokenFile(str(tmp_path / "missing"), ManualClock())


def test_a_file_of_tokens_is_read_again_and_opens_nothing_while_it_is_wrong(tmp_path, caplog):
    path, clock = tmp_path / "tokens", ManualClock()
    file = TokenFile(lines(path, f"ann READ {TOKEN}"), clock)

    def names() -> list[str]:
        clock.advance(1_100)
        return [token.name for token in file.tokens()]

    assert names() == ["ann"]
    lines(path, f"ann READ {TOKEN}\nbob READ {OTHER}")
    assert names() == ["ann", "bob"]
    path.chmod(0o644)
    assert names() == []
    path.chmod(0o600)
    assert names() == ["ann", "bob"]
    lines(path, f"ann READ {TOKEN}\nbob WHO {OTHER}")
    assert names() == ["ann"] and "line 2" in caplog.records[-1].problem
    path.unlink()
    assert names() == []
    assert TOKEN not in caplog.text


@settings(max_examples=50)
@given(st.text(), st.text(min_size=1))
def test_any_file_and_any_token_are_read_without_an_error(content, presented):
    tokens, _, _ = parse_tokens(content)
    assert matching_token(tokens, presented) is None or presented in content


# wrong tokens


def test_many_different_wrong_tokens_of_one_address_have_to_wait():
    clock = ManualClock()
    server = ServerSettings("0.0.0.0", 0, TOKEN, access=AccessSettings(most_failed_tokens=3))
    guarded = RequestGuard(server, clock)

    def sent(token: str, address: str = "10.0.0.1") -> int:
        return status(guarded, Role.READ, {"authorization": f"Bearer {token}"}, address=address)

    assert [sent("stale") for _ in range(50)] == [401] * 50
    assert [sent(f"guess {number}") for number in range(4)] == [401, 401, 429, 429]
    assert (sent(TOKEN), sent(TOKEN, "10.0.0.2")) == (429, 200)
    clock.advance(20_000)
    assert [sent(TOKEN), sent("guess"), sent(TOKEN)] == [200, 401, 429]


def test_addresses_are_bounded_and_those_of_one_network_count_together():
    failed = FailedTokens(1, ManualClock())
    failed.add("2001:db8::1", b"1")
    assert failed.wait_s("2001:db8::ffff") > 0 and failed.wait_s("2001:db9::1") == 0
    for number in range(2 * MOST_ADDRESSES):
        failed.add(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", b"1")
    assert len(failed._attempts) == MOST_ADDRESSES


def test_clients_of_ipv4_are_told_apart_on_a_server_of_ipv6():
    failed = FailedTokens(1, ManualClock())
    failed.add("::ffff:10.0.0.1", b"1")
    assert failed.wait_s("::ffff:10.0.0.1") == failed.wait_s("10.0.0.1") > 0
    assert failed.wait_s("::ffff:10.0.0.2") == 0


def test_the_address_without_a_wrong_token_for_longest_is_forgotten_first():
    failed = FailedTokens(2, ManualClock())
    for number in range(MOST_ADDRESSES):
        failed.add(f"10.0.{number >> 8}.{number & 255}", b"1")
    failed.add("10.0.0.0", b"2")
    failed.add("10.1.0.0", b"1")
    failed.add("10.1.0.0", b"2")
    assert failed.wait_s("10.0.0.0") > 0 and failed.wait_s("10.1.0.0") > 0
    failed.add("10.0.0.1", b"2")
    assert failed.wait_s("10.0.0.1") == 0, "its first wrong token is forgotten"


def test_rest_gives_back_no_more_attempts_than_a_minute_has():
    clock = ManualClock()
    failed = FailedTokens(3, clock)
    failed.add("10.0.0.1", b"1")
    clock.advance(3_600_000)
    for number in range(3):
        assert failed.wait_s("10.0.0.1") == 0
        failed.add("10.0.0.1", b"guess %d" % number)
    assert failed.wait_s("10.0.0.1") == 20


# pages

EVIL = {"origin": "http://evil.example.org"}


@pytest.mark.parametrize(
    ("headers", "read", "operate"),
    [
        ({}, 200, 200),
        ({"origin": "http://127.0.0.1:8081", "content-type": "application/json; charset=utf-8"}, 200, 200),
        ({"origin": "http://127.0.0.1:8081"}, 200, 200),
        ({"origin": "http://127.0.0.1:8081", "content-type": "text/plain"}, 200, 415),
        ({"sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded"}, 200, 415),
        ({"sec-fetch-site": "same-origin"}, 200, 200),
        ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}, 200, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403, 403),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}, 403, 403),
        ({"sec-fetch-site": "other"}, 403, 403),
        (EVIL, 403, 403),
        ({**EVIL, "sec-fetch-site": "same-origin"}, 403, 403),
        ({"origin": "null"}, 403, 403),
        ({"origin": "http://127.0.0.1:3000"}, 403, 403),
        ({"origin": "https://127.0.0.1:8081"}, 403, 403),
        ({"host": "evil.example.org:8081", "origin": "http://evil.example.org:8081"}, 403, 403),
        ({"host": "evil.example.org"}, 403, 403),
        ({"host": ""}, 403, 403),
        ({"host": "127.0.0.1.evil.example.org"}, 403, 403),
        ({"origin": "https://friend.example.org"}, 200, 403),
    ],
)
def test_without_a_token_pages_of_the_server_alone_are_answered(headers, read, operate):
    guarded = guard(origins=["https://friend.example.org"])
    sent = {**OWN, **headers}
    assert (status(guarded, Role.READ, sent), status(guarded, Role.OPERATE, sent)) == (read, operate)
    assert status(guarded, Role.SUBMIT, sent) == 401
    with_token = {**sent, "authorization": f"Bearer {TOKEN}"}
    assert [status(guarded, role, with_token) for role in Role] == [200] * 4


def test_a_get_request_that_changes_something_is_treated_as_one():
    route = Route("GET", "/jobs/{job}/yarn-cancel", dict, Role.OPERATE)
    link = {**OWN, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    with pytest.raises(Refusal, match="403"):
        guard().check(RequestHead("GET", "http", link), route)


@given(st.text(max_size=40), st.sampled_from(["", "http://", "https://"]), st.text(max_size=40))
def test_no_page_of_another_host_operates_whatever_its_headers(host, scheme, origin):
    headers = {"host": host, "origin": f"{scheme}{origin}"}
    is_own = is_loopback(host_name(host)) and headers["origin"].lower() == f"http://{host.strip()}".lower()
    assert (status(guard(), Role.OPERATE, headers) == 200) == is_own


@given(
    st.dictionaries(
        st.sampled_from(["host", "origin", "authorization", "sec-fetch-site", "sec-fetch-mode", "content-type"]),
        st.text(max_size=30) | st.sampled_from(["Bearer x", "127.0.0.1", "http://127.0.0.1", "same-origin", "none"]),
    )
)
def test_any_headers_are_answered_or_refused_and_never_submit_without_a_token(headers):
    seen = [status(guard(), role, headers) for role in Role]
    assert set(seen) <= {200, 401, 403, 415} and seen[-1] == 401
    assert [status(guard("0.0.0.0"), role, headers) for role in Role][1:] == [401] * 3


def test_names_of_the_server_are_demanded_of_all_where_they_are_set():
    guarded = guard(hosts=["Flink.example.org"])
    for host, wanted in (("flink.example.org:443", 200), ("localhost", 200), ("other.example.org", 403)):
        assert status(guarded, Role.READ, {"host": host}) == wanted
        assert status(guarded, Role.SUBMIT, {"host": host, "authorization": f"Bearer {TOKEN}"}) == wanted


def test_browsers_learn_that_pages_of_named_origins_may_read():
    origins = ["https://a.example.org"]
    asked = RequestHead("OPTIONS", "http", {"origin": origins[0], "access-control-request-method": "PATCH"})
    other = RequestHead("OPTIONS", "http", {**asked.headers, "origin": "https://b.example.org"})
    assert preflight_headers(asked, origins, ["GET", "PATCH"]) == {
        "vary": "Origin", "access-control-allow-origin": origins[0], "access-control-allow-methods": "GET, PATCH",
        "access-control-allow-headers": "authorization, content-type", "access-control-max-age": "600",
    }  # fmt: skip
    assert preflight_headers(other, origins, ["GET"]) == {"vary": "Origin"} and cors_headers(asked, []) == {}


@pytest.mark.parametrize(
    ("header", "is_json", "is_text"),
    [
        ("", True, True),
        ("*/*", True, True),
        ("application/json, text/plain, */*", True, True),
        ("text/html", False, False),
        ("text/*;q=0.5", False, True),
        ("application/json;q=0, */*", False, True),
        (",;,", False, False),
    ],
)
def test_an_answer_has_a_type_that_its_client_takes(header, is_json, is_text):
    assert (accepts(header, "application/json"), accepts(header, "text/plain; charset=utf-8")) == (is_json, is_text)
