"""The environment variables that control discovery, and a description of each one that the runtime reads."""

from __future__ import annotations

import os
from collections.abc import Mapping

# A device documents its own variables in its README.
VARIABLES = {
    "DOVETAIL_DEVICE=NAME": "the default device",
    "DOVETAIL_BACKENDS=NAME,...": "only these backends",
    "DOVETAIL_KERNELS=NAME,...": "only these kernel packs; 0: none",
    "DOVETAIL_BACKEND_PATH=FILE:..": "libraries of backends without a wheel",
    "DOVETAIL_BACKEND_AUTOLOAD=0": "discover nothing; dovetail.load_backend() opens backends",
    "DOVETAIL_PROBE_TIMEOUT=N": "seconds that a new backend may take to open (20)",
    "DOVETAIL_EXIT_TIMEOUT=N": "seconds that the end of the process waits for the work of a device (10)",
    "DOVETAIL_NUM_THREADS=N": "threads on the host",
    "DOVETAIL_COMPILE=0": "compiled functions run as ordinary ones",
    "DOVETAIL_COMPILE_CAPTURE=0": "runs of compiled functions are not captured",
    "DOVETAIL_COMPILE_WAIT=1": "a request for code waits until the toolchain has answered",
    "DOVETAIL_COMPILE_DUMP=FOLDER": "writes what the compilers of devices are given: programs, and their loops",
    "DOVETAIL_PASSES=-NAME,...": "compiled functions without passes: raise, open, cast, algebra, fold, cse, fuse",
    "DOVETAIL_TOOLCHAINS=NAME=CMD:..": "what starts toolchains, in place of installed ones; docs/toolchains.md",
    "DOVETAIL_TOOLCHAIN_TIMEOUT=N": "seconds that a toolchain may take to start, and for each answer (60)",
    "DOVETAIL_PERF_MAP=1": "names the code of toolchains in /tmp/perf-PID.map, for perf",
    "DOVETAIL_PACKING=0": "kernels keep no packed copies of operands: less memory, slower",
    "DOVETAIL_LOGS=dispatch,...": "log these parts of the runtime; or all",
    "DOVETAIL_POISON_CALLS=1": "for authors of devices: a call is overwritten when its kernel has returned",
    "DOVETAIL_GUARD_MEMORY=1": "for authors of devices: reports which kernel writes outside its outputs",
}
AUTOLOAD, ONLY, PATHS = "DOVETAIL_BACKEND_AUTOLOAD", "DOVETAIL_BACKENDS", "DOVETAIL_BACKEND_PATH"
KERNELS = "DOVETAIL_KERNELS"
PREFIX = "DOVETAIL_"
NONE = "0"  # as the value of DOVETAIL_KERNELS: no kernel packs


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
        self._look_for_misspelt(environ)

    def _look_for_misspelt(self, environ: Mapping[str, str]) -> None:
        """Warns about likely typos of our variables. Other names may be variables of a device."""
        ours = {form.partition("=")[0] for form in VARIABLES}
        strangers = sorted(name for name in environ if name.startswith(PREFIX) and name not in ours)
        if not strangers:
            return
        from difflib import get_close_matches

        known = [name.removeprefix(PREFIX) for name in ours]
        for name in strangers:
            for near in get_close_matches(name.removeprefix(PREFIX), known, n=1, cutoff=0.85):
                self.problems.append(f"[loader] nothing reads {name}, did you mean {PREFIX}{near}?")

    def _switch(self, value: str) -> bool:
        text = value.strip().lower()
        if text not in ("", "0", "1", "off", "on", "false", "true", "no", "yes"):
            self.problems.append(f"[loader] {AUTOLOAD}: expected 0 or 1, got {value!r}; backends are discovered")
        return text not in ("0", "off", "false", "no")

    def includes(self, name: str) -> bool:
        return not self.only or name in self.only

    def includes_pack(self, name: str) -> bool:
        return not self.kernels or name in self.kernels


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
