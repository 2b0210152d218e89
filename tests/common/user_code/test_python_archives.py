"""Archives that a program takes along: checked early, and unpacked under their names."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from rayflink.common.errors import ConfigError
from rayflink.common.user_code.python_archives import PythonArchive, listed_archives, unpack_beside


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("words.txt", "to be\n")
        program = zipfile.ZipInfo("bin/run")
        program.external_attr = 0o755 << 16
        packed.writestr(program, "#!/bin/sh\n")
    return path


def test_an_archive_is_unpacked_under_its_name_and_programs_stay_programs(archive, tmp_path):
    [first, second] = listed_archives(f"{archive}, file://{archive}#data")
    assert (first.name, second.name, listed_archives(str(second))) == ("data.zip", "data", (second,))
    second.unpack(str(tmp_path / "out"))
    assert (tmp_path / "out" / "data" / "words.txt").read_text() == "to be\n"
    assert os.access(tmp_path / "out" / "data" / "bin" / "run", os.X_OK)


def test_a_member_outside_of_the_archive_is_refused(tmp_path):
    with tarfile.open(tmp_path / "evil.tar", "w") as packed:
        member = tarfile.TarInfo("../outside")
        member.size = 1
        packed.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(ConfigError, match="an archive that can be unpacked"):
        PythonArchive.of(str(tmp_path / "evil.tar")).unpack(str(tmp_path / "out"))
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("name", ["../data", "/data", "a,b", "a#b"])
def test_a_folder_elsewhere_is_refused(archive, name):
    with pytest.raises(ConfigError, match="a relative path without"):
        PythonArchive.of(str(archive), name)


def test_two_archives_need_two_folders(archive):
    with pytest.raises(ConfigError, match="a folder for each archive"):
        listed_archives(f"{archive},{archive}")


def test_functions_of_a_local_run_find_files_by_a_relative_path(archive, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    os.symlink("/no/such/folder", tmp_path / "data")  # of a program that was killed
    unpack_beside([PythonArchive.of(str(archive), "data")])
    assert Path("data/words.txt").read_text() == "to be\n"
    unpack_beside([PythonArchive.of(str(archive), "data.zip")])
    assert "is there already; give the archive another target folder" in caplog.text
