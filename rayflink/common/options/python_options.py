"""The options of a program's Python code; `registry` has them with all others."""

from __future__ import annotations

from .option_declaring import declare as _option
from .option_types import BOOLEAN, INT, LONG, STRING

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
_OWN_PROCESSES = "runs functions in the processes of tasks"
_NO_BUNDLES = "calls functions for the batches of a stream"
CLIENT_EXECUTABLE = _option(PYTHON, "python.client.executable", STRING, None, "Interpreter of the program itself.",
                            unheeded="runs the program by the interpreter that has started it")
PYTHON_PATH = _option(PYTHON, "python.pythonpath", STRING, None, "Folders of modules on the nodes.",
                      unheeded="imports what is installed on a node and what `python.files` names")
SYSTEM_ENVIRONMENT = _option(PYTHON, "python.systemenv.enabled", BOOLEAN, True,
                             "Pass the environment variables of the node to functions.", unheeded=_OWN_PROCESSES)
EXECUTION_MODE = _option(PYTHON, "python.execution-mode", STRING, "process",
                         "Whether functions run in a process or a thread of Flink's.", unheeded=_OWN_PROCESSES)
FUNCTION_MEMORY = _option(PYTHON, "python.fn-execution.memory.managed", BOOLEAN, True,
                          "Give Flink's Python processes managed memory.", unheeded=_OWN_PROCESSES)
ARROW_BATCH = _option(PYTHON, "python.fn-execution.arrow.batch.size", INT, 1000, "Rows in an Arrow batch.",
                      unheeded=_NO_BUNDLES)
BUNDLE_SIZE = _option(PYTHON, "python.fn-execution.bundle.size", INT, 1000, "Rows in a bundle.", unheeded=_NO_BUNDLES)
BUNDLE_TIME = _option(PYTHON, "python.fn-execution.bundle.time", LONG, 1000, "Milliseconds that a bundle waits.",
                      unheeded=_NO_BUNDLES)
PYTHON_CHAINING = _option(PYTHON, "python.operator-chaining.enabled", BOOLEAN, True, "Chain Python operators.",
                          unheeded="chains all operators by pipeline.operator-chaining.enabled")
PYTHON_METRICS = _option(PYTHON, "python.metric.enabled", BOOLEAN, True, "Report the metrics of functions.",
                         unheeded="always reports them")
PYTHON_PROFILE = _option(PYTHON, "python.profile.enabled", BOOLEAN, False, "Print profiles of functions.",
                         unheeded="prints none; attach a profiler such as py-spy to the process")
STATE_CACHE = _option(PYTHON, "python.state.cache-size", INT, 1000, "Entries of the cache of state.",
                      unheeded="reads state in the process of the task")
MAP_READ_CACHE = _option(PYTHON, "python.map-state.read-cache-size", INT, 1000, "Entries of the cache of map state.",
                         unheeded="reads state in the process of the task")
MAP_WRITE_CACHE = _option(PYTHON, "python.map-state.write-cache-size", INT, 1000,
                          "Entries of the cache of writes to map state.",
                          unheeded="writes state in the process of the task")
MAP_BATCH = _option(PYTHON, "python.map-state.iterate-response-batch-size", INT, 1000,
                    "Entries of map state that are sent at once.", unheeded="reads state in the process of the task")
