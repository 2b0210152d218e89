"""Opens and closes the operators of a task's chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rayflink.operators.base import OperatorContext, OperatorSnapshot, UserCodeError
from rayflink.operators.chain import ChainLink

from ..exchange.writer import RecordWriter


class ChainLifecycle:
    """Opens operators tail first, so that a consumer is ready before its producer, and closes each opened one once.

    Args:
        links: the chain, head first.
        writers: behind the chain; what they hold of the user's is opened before all operators and closed after them.
        closing_failed: called for every operator that raises while it is closed.
    """

    def __init__(self, links: list[ChainLink], writers: list[RecordWriter], closing_failed: Callable[[], None]) -> None:
        self._links, self._writers = links, writers
        self._closing_failed = closing_failed
        self._opened = 0

    def open(
        self, context_of: Callable[[int], OperatorContext], restore: Mapping[str, tuple[OperatorSnapshot, ...]]
    ) -> None:
        """Open all operators: set up, then restore and open each; `restore` holds snapshots by operator id.

        Raises:
            UserCodeError: one raised in `open`.
        """
        for index, link in enumerate(self._links):
            link.operator.setup(context_of(index))
        for writer in self._writers:
            writer.open(self._links[-1].operator.ctx)
        for link in reversed(self._links):
            ctx = link.operator.ctx
            self._opened += 1
            link.operator.initialize_state(restore.get(ctx.operator_id, ()))
            try:
                link.operator.open()
            except UserCodeError:
                raise
            except (Exception, SystemExit) as error:
                raise UserCodeError(ctx.operator_name, ctx.call_site, "", "open") from error

    def close(self, quiet: bool) -> None:
        """Close the opened operators, head first; every operator is closed even when one raises.

        Args:
            quiet: the task has failed or was cancelled already; what is raised now is only counted.
        """
        opened, self._opened = self._opened, 0
        first: Exception | SystemExit | None = None
        closing = [link.operator.close for link in self._links[len(self._links) - opened :]]
        for close in [*closing, *(writer.close for writer in self._writers)]:
            try:
                close()
            except (Exception, SystemExit) as error:  # the others must be closed as well; the first error is kept
                self._closing_failed()
                first = first or error
        if first is not None and not quiet:
            raise first
