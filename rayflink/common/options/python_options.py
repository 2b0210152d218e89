"""The options of a program's Python code; `registry` has them with all others."""

from __future__ import annotations

from .option_declaring import declare as _option
from .option_types import BOOLEAN, STRING

PYTHON = "Python"
"""The heading of these options."""
PYTHON_FILES = _option(PYTHON, "python.files", STRING, None,
                       "Modules to ship to every node: .py files, folders, .zip and .egg files, with commas between.")
PYTHON_ARCHIVES = _option(PYTHON, "python.archives", STRING, None,
                          "Zip and tar files to unpack in the current folder of the processes that run functions, with "
                          "commas between; `data.zip#data` names the folder, which else has the name of the file.")
PYTHON_REQUIREMENTS = _option(PYTHON, "python.requirements", STRING, None,
                              "Requirements file whose packages pip installs when a job starts, for all its processes; "
                              "`requirements.txt#packages` takes them from the folder `packages` alone.")
PYTHON_EXECUTABLE = _option(PYTHON, "python.executable", STRING, None,
                            "Interpreter of the processes on Ray that run functions, a path on every node or in an "
                            "archive, with the versions of Python and Ray of the program. Default: that of the node.")
MODULES_BESIDE = _option(PYTHON, "rayflink.python.modules-beside", BOOLEAN, True,
                         "On Ray, also copy the imported modules and packages of the program's folder to every node.")
