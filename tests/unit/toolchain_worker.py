"""A toolchain's worker for tests. Its code has one function, which returns the length of the request.

It writes each request to the file $WORKER_LOG, and takes its time for one that begins with "slow".
"""

import hashlib
import os
import platform
import socket
import struct
import time

CODE = 128  # the offset


def image(value: int) -> bytes:
    if platform.machine() == "x86_64":
        machine, code = 62, b"\xb8" + struct.pack("<I", value) + b"\xc3"  # mov eax, value; ret
    else:
        machine, code = 183, struct.pack("<II", 0x52800000 | value << 5, 0xD65F03C0)  # mov w0, value; ret
    head = struct.pack("<8sIIIIIIQ", b"DVTCODE\0", 1, machine, 4096, 1, 0, CODE, CODE + len(code))
    rest = struct.pack("<Q", CODE).ljust(CODE - len(head) - 32, b"\0") + code
    return head + hashlib.sha256(head + rest).digest() + rest


def main() -> None:
    connection = socket.socket(fileno=0)
    connection.sendall(b"dovetail-tool 1\n")
    while head := connection.recv(8, socket.MSG_WAITALL):
        (size,) = struct.unpack("<Q", head)
        request = connection.recv(size, socket.MSG_WAITALL).decode()
        with open(os.environ["WORKER_LOG"], "a") as log:
            log.write(f"{os.getpid()} {request}\n")
        if request.startswith("slow"):
            time.sleep(1)
        answer = image(len(request))
        connection.sendall(struct.pack("<IIQ", 1, 2500, len(answer)) + answer)


if __name__ == "__main__":
    main()
