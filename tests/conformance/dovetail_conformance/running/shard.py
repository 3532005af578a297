"""--shard I/N: a part of the cases, the same on every machine; parts 1 to N together are all of them."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple


class Shard(NamedTuple):
    number: int  # from 1
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
        if not found or int(found[1]) > int(found[2]):
            raise ValueError(f"expected I/N with I from 1 to N, such as 2/3, got {text!r}")
        return cls(int(found[1]), int(found[2]))

    def has(self, id: str) -> bool:
        """By the id's hash: no case changes its shard when others come or go, and each op is spread over all."""
        return int.from_bytes(hashlib.sha256(id.encode()).digest()[:8]) % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
