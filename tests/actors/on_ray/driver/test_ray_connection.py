"""A driver's view of its cluster, as far as it can be seen without one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.common.errors import ConfigError

pytestmark = pytest.mark.slow  # imports Ray


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, bool], float | None]:
    """(moment, whether the service answers then) -> for how long it is lost; it may be gone for 45 s."""
    from rayflink.actors.on_ray.driver import ray_connection

    now = SimpleNamespace(s=0.0, answers=True)
    monkeypatch.setattr(ray_connection, "time", SimpleNamespace(monotonic=lambda: now.s))
    monkeypatch.setattr(ray_connection, "answers", lambda address: now.answers)
    watched = ray_connection.ControlService("10.0.0.1:6379", 45)

    def at(moment: float, answers: bool) -> Any:
        now.s, now.answers = moment, answers
        return watched.lost_for_s()

    return at


def test_a_control_service_that_comes_back_in_time_is_not_lost(service: Any) -> None:
    seen = [service(2, True), service(40, False), service(46, False), service(47, True), service(91, False)]
    assert seen == [None] * 5


def test_a_control_service_that_stays_away_is_lost_and_it_is_said_for_how_long(service: Any) -> None:
    assert [service(2, True), service(47, False), service(48, False)] == [None, None, 46]


def test_a_control_service_is_not_looked_for_at_every_turn(service: Any) -> None:
    assert [service(60, False), service(60.5, False), service(61, False)] == [60, None, 61]


def test_patience_is_shorter_than_that_of_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    from rayflink.actors.on_ray.driver import ray_connection

    context = SimpleNamespace(gcs_address="10.0.0.1:6379")
    monkeypatch.setattr(ray_connection.ray, "get_runtime_context", lambda: context)
    monkeypatch.setattr(ray_connection, "answers", lambda address: False)
    moment = [0.0]
    monkeypatch.setattr(ray_connection, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    for variable, last in ((None, 45), ("200", 150)):
        moment[0] = 0.0
        if variable:
            monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", variable)
        watched = ray_connection.ControlService.joined()
        moment[0] = last
        assert watched.lost_for_s() is None
        moment[0] = last + 1
        assert watched.lost_for_s() == last + 1


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, beside a cluster that accepts connections and lets nobody in."""
    from ray.exceptions import AuthenticationError

    from rayflink.actors.on_ray.driver import ray_connection

    def client(address: str) -> None:
        raise AuthenticationError(f"InvalidAuthToken at {address}")

    monkeypatch.setattr(ray_connection, "answers", lambda address: True)
    monkeypatch.setattr(ray_connection, "ensure_token_if_auth_enabled", lambda create_token_if_missing: None)
    monkeypatch.setattr(ray_connection, "GcsClient", client)
    monkeypatch.setattr(ray_connection, "_init", lambda namespace: pytest.fail("Ray is tried for 20 s"))
    monkeypatch.setattr(ray_connection.ray, "is_initialized", lambda: False)
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    return ray_connection


def test_a_cluster_that_wants_a_token_is_refused_at_once_with_the_variable_to_set(refusing: Any) -> None:
    with pytest.raises(ConfigError, match="'RAY_AUTH_MODE'.*10.0.0.1:6379 requires.*export RAY_AUTH_MODE=token"):
        refusing.join("tests")


def test_a_wrong_token_is_told_from_a_missing_one(refusing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.exceptions import AuthenticationError

    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with pytest.raises(ConfigError, match="found a token that the cluster at 10.0.0.1:6379 refuses.*get-auth-token"):
        refusing.join("tests")

    def none(create_token_if_missing: bool) -> None:
        raise AuthenticationError("no token")

    monkeypatch.setattr(refusing, "ensure_token_if_auth_enabled", none)
    monkeypatch.setattr(refusing, "GcsClient", lambda address: pytest.fail("it would abort the process"))
    with pytest.raises(ConfigError, match="found no token, with RAY_AUTH_MODE=token.*~/.ray/auth_token"):
        refusing.join("tests")


def test_a_cluster_on_this_machine_that_refuses_its_user_is_not_replaced_by_another(
    refusing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(namespace: str) -> None:
        raise ConnectionError("Failed to connect")

    monkeypatch.delenv("RAY_ADDRESS")
    monkeypatch.setattr(refusing, "started_cluster", lambda: "10.0.0.1:6379")
    monkeypatch.setattr(refusing, "_init", init)
    with pytest.raises(ConfigError, match="environment variable .RAY_AUTH_MODE.: found no value, but the cluster"):
        refusing.join("tests")
    monkeypatch.setattr(refusing, "GcsClient", lambda address: None)
    assert refusing.join("tests") is False


def test_what_answers_and_is_no_cluster_is_said_to_be_none(refusing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.exceptions import RpcError

    def client(address: str) -> None:
        raise RpcError("Timed out while waiting for GCS to become available.")

    monkeypatch.setattr(refusing, "GcsClient", client)
    with pytest.raises(ConfigError, match="'RAY_ADDRESS': found 10.0.0.1:6379, where something else than Ray answers"):
        refusing.join("tests")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_is_told_at_once_that_a_ray_starts(monkeypatch, capsys, terminal):
    from rayflink.actors.on_ray.driver import ray_connection

    said: list[str] = []
    monkeypatch.setattr(ray_connection.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_connection, "join", lambda namespace: False)
    monkeypatch.setattr(ray_connection, "is_terminal", lambda stream: terminal)
    monkeypatch.setattr(ray_connection, "_init", lambda namespace, **how: said.append(capsys.readouterr().err))
    monkeypatch.setattr(ray_connection, "_started_here", False)
    assert ray_connection.connect(1, "tests")
    message = "rayflink: no cluster runs; a Ray starts on this machine, which takes a while\n"
    assert said == [message if terminal else ""]
