"""The objects of value states."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rayflink.table.runtime.processing.process_states import ObjectForm


@dataclass
class Sums:
    """A state with an array."""

    values: np.ndarray = field(default_factory=lambda: np.zeros(2))
    rows: int = 0


def test_an_object_with_an_array_is_stored_and_read():
    form = ObjectForm(Sums)
    state = form.create(None)
    state.values[0], state.rows = 5.0, 1
    again = form.create(form.store(state))
    assert again.values.tolist() == [5.0, 0.0] and again.rows == 1
