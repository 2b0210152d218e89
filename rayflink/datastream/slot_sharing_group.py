"""A slot sharing group with the resources of its slots, under PyFlink's module path."""

from __future__ import annotations

from collections.abc import Mapping

from rayflink.common.options.option_types import MemorySize
from rayflink.graph.attributes import ResourceSpec


class SlotSharingGroup:
    """Operators that share slots, and what each of these slots has.

    On Ray a slot is a process: it gets the cores, and the external resources under Ray's names (`gpu` is Ray's GPU).
    Its heap, off-heap and managed memory together are the memory Ray sets aside for it, a number to place slots by,
    which Ray does not enforce; how much of it is managed is said by the options `taskmanager.memory.managed.*` alone.
    A job in this process has no slots, and heeds none of it.

    >>> group = SlotSharingGroup.builder("heavy").set_cpu_cores(2).set_task_heap_memory_mb(512).build()
    >>> group.get_name(), group.get_cpu_cores(), str(group.get_task_heap_memory())
    ('heavy', 2.0, '512 mb')

    Args:
        name: of the group, not empty.
        cpu_cores: of a slot, above 0; None leaves all resources to the defaults.
        memory: heap, off-heap and managed memory of a slot, each None where not set.
        external_resources: name -> amount, above 0.
    """

    def __init__(
        self,
        name: str,
        cpu_cores: float | None = None,
        memory: tuple[MemorySize | None, MemorySize | None, MemorySize | None] = (None, None, None),
        external_resources: Mapping[str, float] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a slot sharing group needs a name, found {name!r}")
        self._name, self._cpu_cores, self._memory = name, cpu_cores, memory
        self._external = dict(external_resources or {})

    def get_name(self) -> str:
        """Return the name."""
        return self._name

    def get_cpu_cores(self) -> float | None:
        """Return the cores of a slot, or None."""
        return self._cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """Return the heap memory of a slot, or None."""
        return self._memory[0]

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Return the off-heap memory of a slot, or None."""
        return self._memory[1]

    def get_managed_memory(self) -> MemorySize | None:
        """Return the managed memory of a slot, or None."""
        return self._memory[2]

    def get_external_resources(self) -> dict[str, float]:
        """Return the external resources: name -> amount."""
        return dict(self._external)

    @property
    def resources(self) -> ResourceSpec | None:
        """Return the resources that a slot requests from the cluster; None for the defaults."""
        if self._cpu_cores is None:
            return None
        needed = sum(part.bytes for part in self._memory if part is not None)
        return ResourceSpec(self._cpu_cores, -(-needed // (1 << 20)), tuple(self._external.items()))

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Return a builder of a group of this name."""
        return SlotSharingGroup.Builder(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlotSharingGroup) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._name, self._cpu_cores, self._memory))

    def __repr__(self) -> str:
        return f"SlotSharingGroup({self._name!r}, {self.resources})"

    class Builder:
        """Puts a `SlotSharingGroup` together; each setter returns the builder.

        Args:
            name: of the group.
        """

        def __init__(self, name: str) -> None:
            self._name = name
            self._cpu_cores: float | None = None
            self._heap: MemorySize | None = None
            self._off_heap: MemorySize | None = None
            self._managed: MemorySize | None = None
            self._external: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Set the cores of a slot, above 0.

            Raises:
                ValueError: it is not above 0.
            """
            self._cpu_cores = _above_zero(float(cpu_cores), "cpu cores")
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the heap memory of a slot, above 0.

            Raises:
                ValueError: it is not above 0.
            """
            _above_zero(task_heap_memory.bytes, "task heap memory")
            self._heap = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the heap memory of a slot in MiB, above 0."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the off-heap memory of a slot, as a `MemorySize`."""
            self._off_heap = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the off-heap memory of a slot in MiB."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the managed memory of a slot, as a `MemorySize`."""
            self._managed = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the managed memory of a slot in MiB."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """Set an amount, above 0, of another resource, such as `gpu`.

            Raises:
                ValueError: it is not above 0.
            """
            self._external[name] = _above_zero(float(value), f"external resource {name!r}")
            return self

        def build(self) -> SlotSharingGroup:
            """Return the group.

            Raises:
                ValueError: resources are set, but not both cores and heap memory.
            """
            others = (self._off_heap, self._managed, self._external or None)
            whole = self._cpu_cores is not None and self._heap is not None
            if not whole and any(part is not None for part in (self._cpu_cores, self._heap, *others)):
                raise ValueError(
                    f"slot sharing group {self._name!r} has some resources, but not both cpu cores and task heap "
                    "memory; set both, or none of all"
                )
            memory = (self._heap, self._off_heap, self._managed)
            return SlotSharingGroup(self._name, self._cpu_cores, memory, self._external)


def _above_zero(amount: float, what: str) -> float:
    if not amount > 0:
        raise ValueError(f"{what} of a slot must be above 0, found {amount:g}")
    return amount


__all__ = ["MemorySize", "SlotSharingGroup"]
