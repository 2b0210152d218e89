"""The formats of messages by name."""

from __future__ import annotations

from ...errors import SqlError, nearest
from .avro_confluent import AvroConfluent, DebeziumAvroConfluent
from .avro_messages import AvroMessages
from .canal_json import CanalJson, MaxwellJson
from .contract import MessageFormat
from .csv_messages import CsvMessages
from .debezium_json import DebeziumJson, OggJson
from .json_messages import JsonMessages
from .protobuf_messages import ProtobufMessages
from .raw_messages import RawMessages

_FORMATS: tuple[MessageFormat, ...] = (
    JsonMessages(), CsvMessages(), RawMessages(), DebeziumJson(), CanalJson(), MaxwellJson(), OggJson(), AvroMessages(),
    AvroConfluent(), DebeziumAvroConfluent(), ProtobufMessages(),
)  # fmt: skip
_KNOWN = {known.name: known for known in _FORMATS}


def message_format(name: str, table: str) -> MessageFormat:
    """Return the format of a name.

    Args:
        table: its full name, for the error.

    Raises:
        SqlError: there is none of this name.
    """
    if name not in _KNOWN:
        problem = f"{table} has the format {name!r}, which does not exist{nearest(name, _KNOWN)}"
        raise SqlError(problem, f"the formats of messages are {', '.join(sorted(_KNOWN))}")
    return _KNOWN[name]
