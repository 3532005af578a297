"""Case ids and patterns of them: `*` and `?` stand for what they do in a shell, brackets for themselves."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate


def glob(pattern: str) -> Callable[[str], bool]:
    """Does an id as a whole look like the pattern?"""
    found = re.compile(translate(pattern.replace("[", "[[]")))
    return lambda id: found.match(id) is not None
