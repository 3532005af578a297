"""The environment variables that steer discovery."""

from __future__ import annotations

import os
from collections.abc import Mapping

AUTOLOAD, ONLY, PATHS = "DOVETAIL_BACKEND_AUTOLOAD", "DOVETAIL_BACKENDS", "DOVETAIL_BACKEND_PATH"


class Settings:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self.problems: list[str] = []
        self.autoload_text = environ.get(AUTOLOAD, "")
        self.autoload = self._switch(self.autoload_text)
        self.only_text = environ.get(ONLY, "").strip()
        self.only = [name.strip() for name in self.only_text.split(",") if name.strip()]
        self.paths = [path for path in environ.get(PATHS, "").split(os.pathsep) if path]

    def _switch(self, value: str) -> bool:
        word = value.strip().lower()
        if word not in ("", "0", "1", "off", "on", "false", "true", "no", "yes"):
            self.problems.append(f"[loader] {AUTOLOAD}: expected 0 or 1, got {value!r}; backends are discovered")
        return word not in ("0", "off", "false", "no")

    def includes(self, name: str) -> bool:
        return not self.only or name in self.only
