"""Private folders on disks that other users of the machine can write to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rayflink.state import private_folders
from rayflink.state.private_folders import make_private


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Return a folder like /tmp, to which everybody may write."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def test_what_a_job_writes_is_closed_to_others_from_its_own_folder_on(shared):
    before = os.umask(0)
    try:
        make_private(shared / "disk" / "rayflink-job-0" / "state" / "db")
    finally:
        os.umask(before)
    assert mode(shared / "disk") == 0o777, "it is not ours"
    for below in ("", "state", "state/db"):
        assert mode(shared / "disk" / "rayflink-job-0" / below) == 0o700


def test_a_folder_of_another_name_is_closed_itself(shared):
    make_private(shared / "logs" / "ab12")
    assert mode(shared / "logs" / "ab12") == 0o700 and mode(shared / "logs") != 0o700


def test_a_folder_that_is_there_is_taken_where_it_is_our_own(shared):
    make_private(shared / "rayflink-job")
    make_private(shared / "rayflink-job")
    with pytest.raises(FileExistsError):
        make_private(shared / "rayflink-job", may_exist=False)


@pytest.mark.parametrize("below", ["", "state"])
def test_a_link_in_its_place_is_refused(shared, tmp_path, below):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (shared / "rayflink-job").symlink_to(elsewhere)
    with pytest.raises(PermissionError, match="it is a link, and other users could read"):
        make_private(shared / "rayflink-job" / below)
    assert not any(elsewhere.iterdir())


def test_a_folder_of_another_user_is_refused(shared, monkeypatch):
    make_private(shared / "rayflink-job")
    monkeypatch.setattr(private_folders.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(PermissionError, match=f"it belongs to user {os.getuid()}"):
        make_private(shared / "rayflink-job" / "state")
    assert not (shared / "rayflink-job" / "state").exists()
