"""Every error pickles, says what was found, and names a remedy."""

import pickle

import pytest

from rayflink.common import errors
from rayflink.common.errors import (
    ConfigError,
    ControlPlaneTimeout,
    InvalidFunction,
    InvalidTypesError,
    JobCancelled,
    JobExecutionError,
    JobFailed,
    NoResourceAvailable,
    NotSerializable,
    PlanError,
    RayflinkError,
    TaskLost,
    TypeMismatch,
    shorten,
)

JOB = "0" * 32
SAMPLES = [
    ConfigError("parallelism.default", "'x'", "int", "write for example parallelism.default: 4"),
    ControlPlaneTimeout("cancel", "coordinator", 10_000),
    InvalidFunction("map wants a function of 1 argument, found one of 2", "give it 1 argument", "job.py:3"),
    InvalidTypesError("'x' is no type", "use Types.STRING()", "job.py:3"),
    JobCancelled(JOB, "the user"),
    JobExecutionError(JOB, "failed", "look into its log"),
    JobFailed(JOB, "parse", 1, "'a,b'", "Traceback ...\nValueError: bad", "job.py:7"),
    NoResourceAvailable("4 slots of 1 CPU", "2 CPUs", 300_000),
    NotSerializable("function 'parse'", "cannot pickle '_thread.lock' object", "job.py:7"),
    PlanError("a keyed stream is needed", "call key_by() first", "job.py:9"),
    TaskLost("sum#0", "node 10.0.0.3", 50_000, "its actor died"),
    TypeMismatch("result of map 'parse'", ".price", "str 'x'", "Double", "return a float", "job.py:7"),
]


def test_there_is_a_sample_of_every_error():
    defined = {
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, RayflinkError)
    }
    assert {type(sample) for sample in SAMPLES} == defined - {RayflinkError}


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling_whole_and_names_its_remedy(error):
    twin = pickle.loads(pickle.dumps(error))
    assert type(twin) is type(error) and str(twin) == str(error) and vars(twin) == vars(error)
    assert error.remedy and error.remedy in str(error)


def test_a_failed_job_shows_operator_record_traceback_and_line():
    text = str(next(sample for sample in SAMPLES if isinstance(sample, JobFailed)))
    for part in (JOB, "'parse'", "subtask 1", "record: 'a,b'", "ValueError: bad", "job.py:7"):
        assert part in text


def test_a_type_mismatch_says_where_what_and_the_line():
    assert str(SAMPLES[-1]) == (
        "result of map 'parse'.price: found str 'x', wanted Double; return a float (at job.py:7)"
    )


def test_long_records_are_shortened_and_a_broken_repr_is_survived():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no")

    assert shorten("abc") == "'abc'"
    assert len(shorten("x" * 5000)) == 200 and shorten("x" * 5000).endswith("... (5002 characters)")
    assert shorten(Broken()) == "<Broken whose repr raises RuntimeError>"
