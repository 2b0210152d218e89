"""Classes of Protobuf messages, as protoc generates them, from a description in Python."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_F = descriptor_pb2.FieldDescriptorProto
_FILE = descriptor_pb2.FileDescriptorProto(name="rayflink_tests/order.proto", package="rayflink_tests", syntax="proto3")


def _message(name: str, *fields: tuple[str, int, str, bool, bool]) -> None:
    message = _FILE.message_type.add(name=name)
    for number, (field, kind, type_name, is_repeated, is_optional) in enumerate(fields, 1):
        label = _F.LABEL_REPEATED if is_repeated else _F.LABEL_OPTIONAL
        added = message.field.add(name=field, number=number, type=kind, label=label, type_name=type_name or None)
        if is_optional:
            added.proto3_optional, added.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field}")


_COLOR = _FILE.enum_type.add(name="Color")
for _number, _name in enumerate(("UNKNOWN", "RED", "GREEN")):
    _COLOR.value.add(name=_name, number=_number)
_message("Place", ("city", _F.TYPE_STRING, "", False, True), ("zip", _F.TYPE_INT32, "", False, False))
_message(
    "Order",
    ("id", _F.TYPE_INT64, "", False, False), ("note", _F.TYPE_STRING, "", False, True),
    ("price", _F.TYPE_DOUBLE, "", False, True), ("raw", _F.TYPE_BYTES, "", False, False),
    ("color", _F.TYPE_ENUM, ".rayflink_tests.Color", False, False), ("paid", _F.TYPE_BOOL, "", False, False),
    ("tags", _F.TYPE_STRING, "", True, False), ("place", _F.TYPE_MESSAGE, ".rayflink_tests.Place", False, False),
    ("stops", _F.TYPE_MESSAGE, ".rayflink_tests.Place", True, False),
    ("counts", _F.TYPE_MESSAGE, ".rayflink_tests.Order.CountsEntry", True, False),
    ("small", _F.TYPE_UINT32, "", False, False), ("share", _F.TYPE_FLOAT, "", False, False),
)  # fmt: skip
_ENTRY = _FILE.message_type[1].nested_type.add(name="CountsEntry")
_ENTRY.options.map_entry = True
_ENTRY.field.add(name="key", number=1, type=_F.TYPE_STRING, label=_F.LABEL_OPTIONAL)
_ENTRY.field.add(name="value", number=2, type=_F.TYPE_INT64, label=_F.LABEL_OPTIONAL)

_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_FILE)
Order = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("rayflink_tests.Order"))
Place = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("rayflink_tests.Place"))
