"""Functions of rows, arrays and maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ..parsing.program_nodes import FieldAt, Flattened
from .expression_text import Function, Operand, Property, T, Written, to_expression, tree_of

if TYPE_CHECKING:
    from ..expression import Expression


class Collections(Written[T]):
    """Methods of expressions of rows, arrays and maps. Positions in an array count from 1."""

    cardinality = Property("CARDINALITY", "The number of elements.")
    element = Property("ELEMENT", "The only element of an array; NULL where it has none.")
    array_distinct = Function("ARRAY_DISTINCT", "Each element once.")
    array_reverse = Function("ARRAY_REVERSE", "Backwards.")
    array_max = Function("ARRAY_MAX", "The largest element.")
    array_min = Function("ARRAY_MIN", "The smallest element.")
    map_keys = Property("MAP_KEYS", "The keys.")
    map_values = Property("MAP_VALUES", "The values.")
    map_entries = Property("MAP_ENTRIES", "The entries, as rows of key and value.")

    def get(self, name_or_index: str | int) -> Expression[Any]:
        """Return a field of a row, by its name, or by its number from 0."""
        if isinstance(name_or_index, int):
            return to_expression(FieldAt(this=self._tree, index=name_or_index))
        return to_expression(exp.Dot(this=self._tree, expression=exp.to_identifier(name_or_index, quoted=True)))

    @property
    def flatten(self) -> Expression[Any]:
        """Return all fields of a row, each as a column of its own."""
        return to_expression(Flattened(this=self._tree))

    def at(self, index: Operand) -> Expression[Any]:
        """Return an element of an array, or the value of a key of a map."""
        return to_expression(exp.Bracket(this=self._tree, expressions=[tree_of(index)]))

    def __getitem__(self, index: Operand) -> Expression[Any]:
        return self.at(index)

    def array_append(self, addition: Operand) -> Expression[Any]:
        """Append an element."""
        return self._call("ARRAY_APPEND", tree_of(addition))

    def array_contains(self, needle: Operand) -> Expression[bool]:
        """Test whether it has an element."""
        return self._call("ARRAY_CONTAINS", tree_of(needle))

    def array_position(self, needle: Operand) -> Expression[int]:
        """Find the first position of an element, 0 where there is none."""
        return self._call("ARRAY_POSITION", tree_of(needle))

    def array_prepend(self, addition: Operand) -> Expression[Any]:
        """Prepend an element."""
        return self._call("ARRAY_PREPEND", tree_of(addition))

    def array_remove(self, needle: Operand) -> Expression[Any]:
        """Remove all elements that are equal to a value."""
        return self._call("ARRAY_REMOVE", tree_of(needle))

    def array_slice(self, start_offset: Operand, end_offset: Operand = None) -> Expression[Any]:
        """Return the elements from one place to another."""
        return self._call("ARRAY_SLICE", start_offset, end_offset)

    def array_sort(self, ascending_order: Operand = None, null_first: Operand = None) -> Expression[Any]:
        """Sort the elements."""
        return self._call("ARRAY_SORT", ascending_order, null_first)

    def array_union(self, array: Operand) -> Expression[Any]:
        """Return the elements of both, each once."""
        return self._call("ARRAY_UNION", array)

    def array_concat(self, *arrays: Operand) -> Expression[Any]:
        """Return the elements of all, one behind the other."""
        return self._call("ARRAY_CONCAT", *arrays)

    def array_join(self, delimiter: Operand, null_replacement: Operand = None) -> Expression[str]:
        """Return the elements as one text."""
        return self._call("ARRAY_JOIN", delimiter, null_replacement)

    def array_except(self, array: Operand) -> Expression[Any]:
        """Return the elements that another array has not."""
        return self._call("ARRAY_EXCEPT", array)

    def array_intersect(self, array: Operand) -> Expression[Any]:
        """Return the elements that another array has, too."""
        return self._call("ARRAY_INTERSECT", array)

    def map_union(self, *maps: Operand) -> Expression[Any]:
        """Return the entries of all; of equal keys the last one's."""
        return self._call("MAP_UNION", *maps)

    def object_update(self, *kv: Operand) -> Expression[Any]:
        """Return the row with other values of fields.

        Args:
            kv: names of fields and their values in turn.
        """
        return self._call("OBJECT_UPDATE", *kv)
