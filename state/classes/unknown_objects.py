"""Stand-ins for classes that cannot be found, so that state is readable without the program that wrote it."""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from rayflink.user_types import UserKey, UserValue

from ..errors import ForeignClassError
from .class_names import main_attribute
from .moved_modules import current_module
from .plain_classes import PLAIN_CLASSES, admits

_OF_THE_SCRIPT = f"{main_attribute.__module__}:{main_attribute.__qualname__}"
_GETATTR = "builtins:getattr"


class UnknownObject:
    """An object of a class that this process does not have: its constructor arguments and its fields.

    >>> data = pickle.dumps(UnknownObject)  # any class
    >>> known = loads_leniently(data.replace(b"UnknownObject", b"AnotherObject"))
    >>> known("a", 1)
    AnotherObject('a', 1)
    """

    class_of: ClassVar[str] = "an unknown class"
    """Module and name of the class."""
    names: ClassVar[tuple[str, ...]] = ()
    """Names of its fields in their order, where they are known."""

    def __new__(cls, *arguments: UserValue) -> UnknownObject:
        instance = super().__new__(cls)
        instance.arguments = arguments
        instance.fields = None
        return instance

    arguments: tuple[UserValue, ...]
    """The arguments with which the object's class was called."""
    fields: UserValue
    """Its fields by name, where it has any; or what else it keeps."""

    def __init__(self, *arguments: UserValue) -> None:
        pass

    def __setstate__(self, state: UserValue) -> None:
        if isinstance(state, tuple) and len(state) == 2 and state[0] is None:
            state = state[1]
        self.fields = state

    def __reduce__(self) -> Any:
        raise pickle.PicklingError(f"{self.class_of} cannot be found in this process")

    def __call__(self, *arguments: UserValue) -> UnknownObject:
        """Return a stand-in for the result, where the missing name is a function."""
        return stand_in(self.class_of, self.names)(*self.arguments, *arguments)

    def append(self, value: UserValue) -> None:
        """Add an element, where the class derives from list."""
        self.arguments = (*self.arguments, value)

    def __setitem__(self, key: UserKey, value: UserValue) -> None:
        self.arguments = (*self.arguments, (key, value))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnknownObject):
            return NotImplemented
        return (self.class_of, self.arguments, self.fields) == (other.class_of, other.arguments, other.fields)

    def __hash__(self) -> int:
        return hash((self.class_of, self.arguments))

    def __repr__(self) -> str:
        named = zip(self.names, self.arguments, strict=False)
        parts = [f"{name}={argument!r}" for name, argument in named]
        parts += [repr(argument) for argument in self.arguments[len(self.names) :]]
        if isinstance(self.fields, dict):
            parts += [f"{name}={value!r}" for name, value in self.fields.items()]
        elif self.fields is not None:
            parts.append(repr(self.fields))
        return f"{type(self).__name__}({', '.join(parts)})"


class _Unpickler(pickle.Unpickler):
    """An unpickler that puts stand-ins in place of missing classes, and of classes that it is asked to replace."""

    def __init__(
        self, data: bytes | memoryview, stood_for: Collection[str], names: Mapping[str, tuple[str, ...]]
    ) -> None:
        super().__init__(io.BytesIO(data))
        self._stood_for, self._names = stood_for, names
        self.refused: set[str] = set()
        """Names that are there and were not imported."""

    def find_class(self, module: str, name: str) -> Any:
        module = current_module(module)
        class_of = f"{module}:{name}"
        if class_of in self._stood_for:
            return self._stand_in(class_of)
        if class_of == _OF_THE_SCRIPT:
            return self._of_the_script
        if class_of == _GETATTR:
            return self._attribute
        if not self._admits(class_of):
            return self._stand_in(class_of)
        try:
            return main_attribute(name) if module == "__main__" else super().find_class(module, name)
        except Exception:  # a module that cannot be imported may raise anything
            return self._stand_in(class_of)

    def _admits(self, class_of: str) -> bool:
        if not admits(class_of):
            self.refused.add(class_of)
        return class_of not in self.refused

    def _stand_in(self, class_of: str) -> type[UnknownObject]:
        return stand_in(class_of, self._names.get(class_of, ()))

    def _attribute(self, *arguments: UserValue) -> Any:
        """Return the result of `getattr`, which is how a method of a class is pickled."""
        if len(arguments) == 2 and isinstance(arguments[0], type) and not issubclass(arguments[0], UnknownObject):
            owner, name = arguments
            if f"{owner.__module__}:{owner.__qualname__}.{name}" in PLAIN_CLASSES:
                return getattr(owner, name)
        return getattr(*arguments) if self._admits(_GETATTR) else self._stand_in(_GETATTR)(*arguments)

    def _of_the_script(self, name: str) -> Any:
        """Return what the job's script defines, of which a worker knows only the name."""
        class_of = f"__main__:{name}"
        return main_attribute(name) if self._admits(class_of) else self._stand_in(class_of)


_STAND_INS: dict[tuple[str, tuple[str, ...]], type[UnknownObject]] = {}


def stand_in(class_of: str, names: tuple[str, ...] = ()) -> type[UnknownObject]:
    """Return the class that stands for the one of that name, `module:qualname`, with these fields."""
    known = _STAND_INS.get((class_of, names))
    if known is None:
        qualname = class_of.partition(":")[2]
        members = {"class_of": class_of, "names": names, "__qualname__": qualname}
        known = _STAND_INS[class_of, names] = type(qualname.rpartition(".")[2], (UnknownObject,), members)
    return known


def loads_leniently(
    data: bytes | memoryview, stood_for: Collection[str] = (), names: Mapping[str, tuple[str, ...]] | None = None
) -> Any:
    """Unpickle data, with stand-ins for classes that cannot be found here.

    Args:
        stood_for: classes for which there are stand-ins though they can be found, as `module:qualname`. In a block
            `only_plain_classes` these are all that are not plain.
        names: class -> names of its fields in their order, as far as known.

    Raises:
        ForeignClassError: in such a block, a value cannot do with a stand-in for one of its parts.
    """
    unpickler = _Unpickler(data, stood_for, names or {})
    try:
        return unpickler.load()
    except (TypeError, AttributeError) as error:  # a plain class that takes no stand-in
        if unpickler.refused:
            raise ForeignClassError(sorted(unpickler.refused), error) from error
        raise


__all__ = ["UnknownObject", "loads_leniently", "stand_in"]
