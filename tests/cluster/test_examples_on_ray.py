"""Examples run as scripts of their own on a running Ray print what their docstrings state."""

from __future__ import annotations

import pytest

from tests.test_examples import run_example, stated_output

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


@pytest.mark.parametrize("name", ["connected_streams", "socket_words"])
def test_an_example_prints_on_ray_what_its_docstring_states(name, tmp_path):
    assert run_example(f"{name}.py", "--ray", cwd=tmp_path) == stated_output(name)
