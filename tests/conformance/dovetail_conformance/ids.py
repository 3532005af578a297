"""Case ids and patterns of them: `*` and `?` are wildcards as in a shell, brackets are literal."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate


def glob(pattern: str) -> Callable[[str], bool]:
    """Whether a whole id matches the pattern."""
    found = re.compile(translate(pattern.replace("[", "[[]")))
    return lambda id: found.match(id) is not None
