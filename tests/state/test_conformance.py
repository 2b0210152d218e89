"""Every keyed state backend keeps the same laws; another backend is one line here."""

import pytest

from rayflink.state.memory import HashMapBackend
from rayflink.testing.conformance import BACKEND_LAWS, LONG_BACKEND_LAWS, check_backend
from tests.operators.write_back import WriteBackBackend

BACKENDS = [
    pytest.param(HashMapBackend, id="hashmap"),
    pytest.param(WriteBackBackend, id="write back"),
]


@pytest.mark.parametrize("make", BACKENDS)
@pytest.mark.parametrize(
    "law",
    [
        pytest.param(law, id=law.__name__, marks=[pytest.mark.slow] if law in LONG_BACKEND_LAWS else [])
        for law in BACKEND_LAWS
    ],
)
def test_a_backend_keeps_the_law(make, law):
    check_backend(make, [law])
