"""Models described in Python, for `create_model` of a `TableEnvironment`."""

from __future__ import annotations

from typing import Any

from rayflink.common.errors import InvalidTypesError

from .catalog.catalog_objects import CatalogModel
from .schema import Schema

__all__ = ["ModelDescriptor", "ModelDescriptorBuilder"]


class ModelDescriptor:
    """A model: the columns that go in and come out, and the provider that predicts. Made by `for_provider`.

    >>> from rayflink.table import DataTypes
    >>> inputs = Schema.new_builder().column("text", DataTypes.STRING()).build()
    >>> outputs = Schema.new_builder().column("label", DataTypes.STRING()).build()
    >>> builder = ModelDescriptor.for_provider("python").input_schema(inputs).output_schema(outputs)
    >>> builder.option("python.model", "shop.models.Labels").build().get_options()
    {'provider': 'python', 'python.model': 'shop.models.Labels'}

    Args:
        model: as a catalog stores it.
    """

    def __init__(self, model: CatalogModel) -> None:
        self.model = model

    @staticmethod
    def for_provider(provider: str) -> ModelDescriptorBuilder:
        """Return a builder of a model of a provider; `python` is the one there is."""
        return ModelDescriptorBuilder(provider)

    def get_options(self) -> dict[str, str]:
        """Return the options, with 'provider' among them."""
        return self.model.get_options()

    def get_input_schema(self) -> Schema | None:
        """Return the columns that go in."""
        return self.model.get_input_schema()

    def get_output_schema(self) -> Schema | None:
        """Return the columns that come out."""
        return self.model.get_output_schema()

    def get_comment(self) -> str | None:
        """Return the comment; None: there is none."""
        return self.model.get_comment() or None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelDescriptor) and self.model == other.model

    __hash__ = None  # type: ignore[assignment]  # a schema may have any expression

    def __str__(self) -> str:
        return f"ModelDescriptor({self.get_options()})"


class ModelDescriptorBuilder:
    """Builds a `ModelDescriptor`; each call returns the builder."""

    def __init__(self, provider: str) -> None:
        self._options = {"provider": provider}
        self._input: Schema | None = None
        self._output: Schema | None = None
        self._comment: str | None = None

    def input_schema(self, input_schema: Schema) -> ModelDescriptorBuilder:
        """Set the columns that go in."""
        self._input = input_schema
        return self

    def output_schema(self, output_schema: Schema) -> ModelDescriptorBuilder:
        """Set the columns that come out."""
        self._output = output_schema
        return self

    def option(self, key: Any, value: Any) -> ModelDescriptorBuilder:
        """Set an option of the provider."""
        self._options[getattr(key, "key", key)] = str(value)
        return self

    def comment(self, comment: str) -> ModelDescriptorBuilder:
        """Set the comment."""
        self._comment = comment
        return self

    def build(self) -> ModelDescriptor:
        """Return the model.

        Raises:
            InvalidTypesError: the columns that go in or come out are not set.
        """
        if self._input is None or self._output is None:
            missing = "input_schema" if self._input is None else "output_schema"
            raise InvalidTypesError(f"a model without {missing}", f"call {missing}(Schema.new_builder()...)")
        return ModelDescriptor(CatalogModel(self._input, self._output, self._options, self._comment))


ModelDescriptor.Builder = ModelDescriptorBuilder  # type: ignore[attr-defined]
