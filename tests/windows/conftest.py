"""The core and the CPU device for Windows, which make test-windows builds, and Wine to run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass
class Built:
    """What is built, in the folder DOVETAIL_WINDOWS."""

    folder: Path

    @property
    def core(self) -> Path:
        """With libdovetail.dll and dovetail-probe.exe."""
        return self.folder / "install/dovetail"

    @property
    def cpu(self) -> Path:
        return self.folder / "install/dovetail_cpu/lib/dovetail_cpu.dll"

    @property
    def programs(self) -> Path:
        """Those of the tests, next to the runtime, and their plugins in folders of their own."""
        return self.folder / "tests"


@pytest.fixture(scope="session")
def built() -> Built:
    folder = os.environ.get("DOVETAIL_WINDOWS")
    if not folder:
        pytest.skip("nothing is built for Windows: run make test-windows, or set DOVETAIL_WINDOWS")
    return Built(Path(folder))


class Wine:
    """Runs programs in a Windows of its own, in a folder that is removed with it. It has no display."""

    def __init__(self, prefix: Path) -> None:
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(prefix), "LC_ALL": "C.UTF-8", "DOVETAIL_NUM_THREADS": "1",
            "WINEPREFIX": str(prefix / "wine"), "WINEARCH": "win64", "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "winemenubuilder.exe=d;mscoree=;mshtml=",  # nothing to install
        }  # fmt: skip
        # The server and the services that it starts would hold pipes open. Without --persistent the machine starts
        # anew after each pause.
        for command in (["wineserver", "--persistent"], ["wine", "wineboot", "--init"]):
            quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            subprocess.run(command, env=self.environment, timeout=300, check=False, **quiet)

    def _run(
        self, command: list[str], timeout: int, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess:
        return subprocess.run(
            command, env=self.environment | variables, cwd=cwd, stdin=subprocess.DEVNULL, timeout=timeout,
            capture_output=True, check=False, text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip

    @staticmethod
    def path(path: Path) -> str:
        r"""The name that programs have for it: Z:\tmp\x."""
        return "Z:" + str(path).replace("/", "\\")

    def run(self, program: Path, *arguments: object, timeout: int = 300, **options) -> subprocess.CompletedProcess:
        """Paths among the arguments get their names in Wine. Options are `cwd` and variables of the environment."""
        given = [self.path(a) if isinstance(a, Path) else str(a) for a in arguments]
        return self._run(["wine", str(program), *given], timeout, **options)

    def ok(self, program: Path, *arguments: object, **options) -> str:
        """The program's output; it must end well."""
        ended = self.run(program, *arguments, **options)
        assert ended.returncode == 0, (
            f"{program.name} {arguments}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
        )
        return ended.stdout

    def end(self) -> None:
        self._run(["wineserver", "--kill"], 60)
        self._run(["wineserver", "--wait"], 60)


@pytest.fixture(scope="session")
def wine(tmp_path_factory):
    if not shutil.which("wine"):
        pytest.skip("wine is not installed: Debian's packages wine and wine64 have it")
    prefix = tmp_path_factory.mktemp("wine")
    made = Wine(prefix)
    yield made
    made.end()
    shutil.rmtree(prefix, ignore_errors=True)


@pytest.fixture
def deployed(built: Built, tmp_path: Path) -> Path:
    """A folder as a product has it: a program, the runtime and its probe, and plugins in a folder of theirs."""
    folder = tmp_path / "t\u00e4st \u65e5\u672c"  # letters of no code page, and a space
    (folder / "plugins").mkdir(parents=True)
    for name in ("first.exe", "load.exe", "libdovetail.dll", "dovetail-probe.exe"):
        shutil.copy(built.programs / name, folder)
    return folder
