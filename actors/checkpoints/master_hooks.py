"""The hooks of a program that are called in its coordinator at checkpoints.

Source: apache/flink MasterHooks.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence

from rayflink.common.errors import described
from rayflink.common.functions.master_hook import HOOK_PREFIX as PREFIX
from rayflink.common.functions.master_hook import MasterTriggerRestoreHook
from rayflink.common.text_output.logs import get_logger
from rayflink.state.errors import StateError

log = get_logger(__name__)


class HookError(StateError):
    """A master hook failed, or returned a value of the wrong type."""

    def __init__(self, hook: str, problem: str) -> None:
        super().__init__(hook, problem)
        self.hook, self.problem = hook, problem

    def __str__(self) -> str:
        return f"master hook {self.hook!r} {self.problem}"


class MasterHooks:
    """Calls all hooks of a job, in the order of their registration.

    Raises:
        HookError: two have one identifier.
    """

    def __init__(self, hooks: Sequence[MasterTriggerRestoreHook]) -> None:
        self._hooks: dict[str, MasterTriggerRestoreHook] = {}
        for hook in hooks:
            name = hook.get_identifier()
            if name in self._hooks:
                raise HookError(name, "is registered twice; give each hook an identifier of its own")
            self._hooks[name] = hook

    def trigger(self, checkpoint_id: int, timestamp: int) -> dict[str, str]:
        """Call all hooks for a checkpoint, and return their bytes as properties of its manifest.

        Raises:
            HookError: one raises, or gives no bytes.
        """
        encoded: dict[str, str] = {}
        for name, hook in self._hooks.items():
            try:
                data = hook.trigger_checkpoint(checkpoint_id, timestamp)
            except (Exception, SystemExit) as error:
                raise HookError(name, f"failed at checkpoint {checkpoint_id}: {described(error)}") from error
            if isinstance(data, bytes):
                encoded[PREFIX + name] = b64encode(data).decode()
            elif data is not None:
                wanted = "bytes or None are wanted: turn it into bytes"
                raise HookError(name, f"gave a {type(data).__name__} at checkpoint {checkpoint_id}; {wanted}")
        return encoded

    def restore(self, checkpoint_id: int, properties: Mapping[str, str], allow_unclaimed: bool) -> None:
        """Restore the hooks from a checkpoint that the job starts from.

        Args:
            properties: of its manifest.
            allow_unclaimed: what belongs to no hook is left out.
        Raises:
            HookError: one raises, or something belongs to none.
        """
        by_hook = {key[len(PREFIX) :]: b64decode(data) for key, data in properties.items() if key.startswith(PREFIX)}
        for name in sorted(by_hook.keys() - self._hooks.keys()):
            if not allow_unclaimed:
                remedy = "register the hook again, or set execution.state-recovery.ignore-unclaimed-state"
                raise HookError(name, f"is in checkpoint {checkpoint_id}, but not in the program; {remedy}")
            log.warning("data of a master hook is left out", extra={"hook": name, "checkpoint_id": checkpoint_id})
        for name, hook in self._hooks.items():
            try:
                hook.restore_checkpoint(checkpoint_id, by_hook.get(name))
            except (Exception, SystemExit) as error:
                raise HookError(name, f"failed to restore checkpoint {checkpoint_id}: {described(error)}") from error

    def reset(self) -> None:
        """Reset the hooks: the job starts without a checkpoint.

        Raises:
            HookError: one raises.
        """
        for name, hook in self._hooks.items():
            try:
                hook.reset()
            except (Exception, SystemExit) as error:
                raise HookError(name, f"failed to reset: {described(error)}") from error

    def close(self) -> None:
        """Close all hooks when the job has ended, also when some raise."""
        for name, hook in self._hooks.items():
            try:
                hook.close()
            except (Exception, SystemExit) as error:
                log.warning("a master hook failed to close", extra={"hook": name, "error": described(error)})


__all__ = ["HookError", "MasterHooks"]
