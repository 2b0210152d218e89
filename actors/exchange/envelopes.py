"""Envelopes as one small header and their data bodies, so that Ray carries each body by itself (large ones by
reference).
"""

from __future__ import annotations

import pickle
from dataclasses import replace

from .frames import BufferResponse, Envelope


def split_envelope(envelope: Envelope) -> tuple[bytes, list[bytes]]:
    """Split an envelope into header bytes and the bodies of its data buffers, in order."""
    bodies: list[bytes] = []
    frames = []
    for frame in envelope.frames:
        if isinstance(frame, BufferResponse) and frame.body is not None:
            bodies.append(frame.body)
            frame = replace(frame, body=b"")
        frames.append(frame)
    return pickle.dumps(replace(envelope, frames=tuple(frames)), 5), bodies


def join_envelope(header: bytes, bodies: tuple[bytes, ...]) -> Envelope:
    """Join the parts that `split_envelope` returned into the envelope."""
    envelope: Envelope = pickle.loads(header)
    if not bodies:
        return envelope
    rest = iter(bodies)
    frames = tuple(
        replace(frame, body=next(rest)) if isinstance(frame, BufferResponse) and frame.body is not None else frame
        for frame in envelope.frames
    )
    return replace(envelope, frames=frames)
