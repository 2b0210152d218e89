"""Names for Ray's own objects, whose attributes mypy does not know."""

from __future__ import annotations

from typing import Any, TypeAlias

RayActor: TypeAlias = Any
"""The handle of an actor: it has a `.remote(...)` for each method of the actor's class."""
RayActorClass: TypeAlias = Any
"""An actor class of `ray.remote`: `.remote(...)` makes an actor of it."""
RayRef: TypeAlias = Any
"""A reference to a value in Ray's object store, or to the answer of a call."""

__all__ = ["RayActor", "RayActorClass", "RayRef"]
