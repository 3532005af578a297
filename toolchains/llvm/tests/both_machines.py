"""A worker that also makes code of each request for a machine of the other kind, and refuses what does not link there."""

from __future__ import annotations

import json
import socket

from dovetail_llvm import worker
from dovetail_llvm.protocol import serve

FEATURES = {"x86_64-linux-gnu": "+avx2,+fma,+f16c", "aarch64-linux-gnu": "+neon"}


def build(request: bytes) -> bytes:
    head, _, ir = request.partition(b"\n")
    asked = json.loads(head)
    (other,) = FEATURES.keys() - {asked["target"]}
    elsewhere = json.dumps(asked | {"target": other, "features": FEATURES[other]})
    worker.build(elsewhere.encode() + b"\n" + ir)
    return worker.build(request)


if __name__ == "__main__":
    with socket.socket(fileno=0) as connection:
        serve(connection, build)
