"""State as tables: reading, comparing, editing and making the contents of savepoints and checkpoints.

`savepoint` opens one without the job that wrote it; `states`, `shares` and `rows` read a state; `differences`
compares two; `edits` and `writing` make new savepoints; `compatibility` checks one against a program. Addresses of
savepoints and tables enter; tables, and savepoints in the format of all backends, leave. It runs no job: state of a
running job is reached by a savepoint only. The formats themselves are in `rayflink.state`.
"""
# ruff: noqa: I001 - the imports are a table of names

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.state_processor.compatibility import (
        StateVerdict as StateVerdict,
        check_savepoint as check_savepoint,
    )
    from rayflink.state_processor.differences import (
        RowChange as RowChange,
        StateChanges as StateChanges,
        differences as differences,
    )
    from rayflink.state_processor.disposal import (
        DisposalError as DisposalError,
        dispose_savepoint as dispose_savepoint,
    )
    from rayflink.state_processor.rows import StateRow as StateRow
    from rayflink.state_processor.savepoint import (
        NotInSavepointError as NotInSavepointError,
        OperatorState as OperatorState,
        Savepoint as Savepoint,
        read_savepoint as read_savepoint,
    )
    from rayflink.state_processor.states import SavedState as SavedState, UnfitValueError as UnfitValueError
    from rayflink.state_processor.tables import ColumnError as ColumnError
    from rayflink.state_processor.writing import SavepointExistsError as SavepointExistsError
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.state_processor.compatibility": "StateVerdict check_savepoint",
            "rayflink.state_processor.differences": "RowChange StateChanges differences",
            "rayflink.state_processor.disposal": "DisposalError dispose_savepoint",
            "rayflink.state_processor.rows": "StateRow",
            "rayflink.state_processor.savepoint": "NotInSavepointError OperatorState Savepoint read_savepoint",
            "rayflink.state_processor.states": "SavedState UnfitValueError",
            "rayflink.state_processor.tables": "ColumnError",
            "rayflink.state_processor.writing": "SavepointExistsError",
        },
    )
