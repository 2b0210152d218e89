"""Modules, packages and files that the functions of queries take along, and names of older versions for options."""

from __future__ import annotations

from .query_runner import QueryRunner


class TakenAlong:
    """The Python code that a `TableEnvironment` takes to where functions run."""

    _queries: QueryRunner

    def add_python_file(self, file_path: str) -> None:
        """Let functions import from a .py file, a folder, a package, or a .zip or .egg file.

        Raises:
            ConfigError: it is none of them, or is not there.
        """
        self._queries.env.add_python_file(file_path)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Install the packages of a requirements file for functions when a query is run.

        Args:
            requirements_file_path: as of pip.
            requirements_cache_dir: folder with the packages; None: pip asks its index.

        Raises:
            ConfigError: a file is not there, or a line is no requirement.
        """
        self._queries.env.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack a zip or tar file where functions run; they find its files by a relative path.

        Args:
            archive_path: of the archive.
            target_dir: the folder into which it is unpacked; None: it has the name of the file.

        Raises:
            ConfigError: it is no archive, or is not there; the folder is no relative path, or has another archive.
        """
        self._queries.env.add_python_archive(archive_path, target_dir)


__all__ = ["TakenAlong"]
