"""The examples in the docstrings of the product run."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

from tests.source_files import PRODUCT, source_files

NEED_A_CLUSTER = ("rayflink.spark", "rayflink.actors.on_ray")
"""Parts whose examples need Ray or Spark; their pages and cluster tests run them."""


@pytest.mark.slow  # imports nearly everything
@pytest.mark.filterwarnings("ignore")
def test_the_examples_in_docstrings_run():
    failed = []
    with_examples = [file for file in source_files(PRODUCT) if ">>>" in file.text()]
    for file in with_examples:
        if not file.module.startswith(NEED_A_CLUSTER):
            options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            if doctest.testmod(import_module(file.module), optionflags=options).failed:
                failed.append(file.name)
    assert not failed and len(with_examples) > 100
