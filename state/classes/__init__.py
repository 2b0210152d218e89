"""Classes that stored bytes refer to: their names, their fields, and stand-ins for classes that cannot be found.

`class_names` gives a class a name that every process resolves alike, `moved_modules` knows old names of this
package, `class_schemas` reads the fields of a class, and `pickling` writes any value with classes by name.
`plain_classes` lists those that a snapshot of unknown origin may name, and `unknown_objects` stands for the rest.

Serializers with versions of their own are in `rayflink.state.schema`.
"""
