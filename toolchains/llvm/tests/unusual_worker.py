"""Workers for tests of groups.

`both` also makes code of each request for a machine of the other kind, and refuses what does not link there;
`wrong` subtracts where floats are to be added.
"""

import json
import socket
import sys

from dovetail_llvm import worker
from dovetail_llvm.protocol import serve

FEATURES = {"x86_64-linux-gnu": "+avx2,+fma,+f16c", "aarch64-linux-gnu": "+neon"}


def both(request: bytes) -> bytes:
    head, _, ir = request.partition(b"\n")
    asked = json.loads(head)
    (other,) = FEATURES.keys() - {asked["target"]}
    elsewhere = json.dumps(asked | {"target": other, "features": FEATURES[other]})
    worker.build(elsewhere.encode() + b"\n" + ir)
    return worker.build(request)


def wrong(request: bytes) -> bytes:
    return worker.build(request.replace(b"= fadd ", b"= fsub "))


if __name__ == "__main__":
    with socket.socket(fileno=0) as connection:
        serve(connection, {"both": both, "wrong": wrong}[sys.argv[1]])
