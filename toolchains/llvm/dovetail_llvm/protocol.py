"""The worker's end of the conversation with Dovetail: requests and answers, with their lengths."""

import signal
import socket
import struct
import time
from collections.abc import Callable

__all__ = ["Refusal", "serve"]

GREETING = b"dovetail-tool 1\n"
# Seconds after which the process ends by itself, whatever it is doing: Dovetail has gone, or has given up before.
IDLE, BUSY = 60, 24 * 3600
LARGEST = 1 << 30


class Refusal(Exception):
    """The request cannot be built; the text says why."""


def serve(connection: socket.socket, build: Callable[[bytes], bytes]) -> None:
    """Answers requests until the other end closes. `build` makes an image of a request or raises Refusal."""
    connection.sendall(GREETING)
    while True:
        signal.alarm(IDLE)
        head = _receive(connection, 8)
        if head is None:
            return
        (size,) = struct.unpack("<Q", head)
        if size > LARGEST or (request := _receive(connection, size)) is None:
            return
        signal.alarm(BUSY)
        begin = time.process_time()
        try:
            made, answer = 1, build(request)
        except Refusal as refusal:
            made, answer = 0, str(refusal).encode(errors="replace")[:4000]
        microseconds = int((time.process_time() - begin) * 1e6)
        connection.sendall(struct.pack("<IIQ", made, microseconds, len(answer)) + answer)


def _receive(connection: socket.socket, size: int) -> bytes | None:
    """So many bytes; None where the other end closes before."""
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
