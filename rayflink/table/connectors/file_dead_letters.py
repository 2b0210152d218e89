"""Lines of files that cannot be read, on their way to a folder of dead letters."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING

from rayflink.common.connector_base.malformed_records import MalformedRecord
from rayflink.common.serialization import Encoder
from rayflink.connectors.files.buckets import BucketAssigner
from rayflink.connectors.files.file_sink import FileSink
from rayflink.datastream.streams.stream_builder import set_sink_identity

from .messages.malformed_options import DEAD_LETTERS

if TYPE_CHECKING:
    from rayflink.datastream.streams.stream import DataStream


class DeadLetterEncoder(Encoder):
    """Encodes a malformed line as an object: its bytes in base64, as JSON has BYTES, the error and the place.

    >>> DeadLetterEncoder().encode(MalformedRecord(b"{", "no JSON", "'a.json', line 3"))
    b'{"message": "ew==", "error": "no JSON", "place": "\\'a.json\\', line 3"}\\n'
    """

    def encode(self, element: MalformedRecord) -> bytes:
        message = b64encode(element.message).decode()
        return json.dumps({"message": message, "error": element.error, "place": element.place}).encode() + b"\n"


def write_dead_letters(stream: DataStream, path: str, name: str) -> None:
    """Write the malformed lines of a source to files of a folder, each once.

    Args:
        stream: the rows of the source.
        path: the folder.
        name: of the table.
    """
    form = FileSink.for_row_format(path, DeadLetterEncoder())
    sink = form.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    step = stream.get_side_output(DEAD_LETTERS).sink_to(sink).name(f"Dead letters: {name}")
    set_sink_identity(step, f"dead letters of {name} into {path}")


__all__ = ["DeadLetterEncoder", "write_dead_letters"]
