"""All that a program takes along to where its functions run: modules, packages, archives, and an interpreter."""

from __future__ import annotations

from dataclasses import dataclass

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.common.user_code.python_archives import PythonArchive, listed_archives, unpack_beside
from rayflink.common.user_code.python_executable import check_executable, is_own_interpreter, refuse_executable_here
from rayflink.common.user_code.python_files import listed_python_files, put_on_path
from rayflink.common.user_code.python_requirements import PythonRequirements


@dataclass(frozen=True)
class PythonDependencies:
    """Files that the processes of a job get.

    Args:
        files: modules and packages to import, those before others that come first.
        archives: unpacked in the current folder of the processes.
        executable: their interpreter; "": that of the node.
    """

    files: tuple[str, ...] = ()
    archives: tuple[PythonArchive, ...] = ()
    executable: str = ""

    @classmethod
    def of(cls, configuration: Configuration, is_local: bool, is_remote: bool = False) -> PythonDependencies:
        """Return what the options of a job name, checked; this process imports from it from now on.

        Required packages are installed into a folder. A local run takes those that this interpreter has.

        Args:
            is_local: functions run in this process.
            is_remote: functions run on machines whose interpreters cannot be looked at from here.

        Raises:
            ConfigError: one is wrong or missing, or a package cannot be installed.
        """
        get = configuration.get
        files = listed_python_files(get(options.PYTHON_FILES))
        archives = listed_archives(get(options.PYTHON_ARCHIVES))
        executable = get(options.PYTHON_EXECUTABLE) or ""
        if is_local:
            refuse_executable_here(executable)
        elif executable and not is_remote:
            check_executable(executable)
        requirements = PythonRequirements.of_option(get(options.PYTHON_REQUIREMENTS))
        if requirements is not None and not (is_local and requirements.are_met()):
            files = (*files, requirements.install())
        put_on_path(files)
        if is_local:
            unpack_beside(archives)
        return cls(files, archives, "" if not executable or is_own_interpreter(executable) else executable)


__all__ = ["PythonDependencies"]
