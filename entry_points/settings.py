"""The environment variables that steer discovery."""

from __future__ import annotations

import os
from collections.abc import Mapping

AUTOLOAD, ONLY, PATHS = "DOVETAIL_BACKEND_AUTOLOAD", "DOVETAIL_BACKENDS", "DOVETAIL_BACKEND_PATH"
KERNELS = "DOVETAIL_KERNELS"
NONE = "0"  # in the place of names of kernel packs


class Settings:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self.problems: list[str] = []
        self.autoload_text = environ.get(AUTOLOAD, "")
        self.autoload = self._switch(self.autoload_text)
        self.only_text = environ.get(ONLY, "").strip()
        self.only = _names(self.only_text)
        self.kernels_text = environ.get(KERNELS, "").strip()
        self.kernels = _names(self.kernels_text)
        self.paths = [path for path in environ.get(PATHS, "").split(os.pathsep) if path]

    def _switch(self, value: str) -> bool:
        word = value.strip().lower()
        if word not in ("", "0", "1", "off", "on", "false", "true", "no", "yes"):
            self.problems.append(f"[loader] {AUTOLOAD}: expected 0 or 1, got {value!r}; backends are discovered")
        return word not in ("0", "off", "false", "no")

    def includes(self, name: str) -> bool:
        return not self.only or name in self.only

    def includes_pack(self, name: str) -> bool:
        return not self.kernels or name in self.kernels


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
