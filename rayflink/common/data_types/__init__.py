"""The type system behind `rayflink.common.typeinfo`: what a declared type checks, converts and compares.

`type_base` is the contract, `basic_types` and `composite_types` the types, `type_hints` finds a type from hints and
values, and `type_serializers` writes values as their type directs. Hints of a program enter; types with their
serializers leave. SQL's types are in `rayflink.table.types`, and serializers of state in `rayflink.state.schema`.
"""
