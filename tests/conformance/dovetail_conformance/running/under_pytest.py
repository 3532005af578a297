"""The suite's cases as items of pytest. They run in a worker process as ever: a crash costs one case."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from .. import pytest_plugin
from ..cases import Case
from ..cli import TIMEOUT
from ..levels.standing import costs
from ..reporting.live import headline
from ..results import Result, Status
from .options import Options, UsageError
from .plan import plan
from .pool import Config, DeviceUnavailable, Pool

FILE = Path(pytest_plugin.__file__)  # pytest's file of the cases
LOST = "the device was lost"


class Suite:
    """The plugin of a run that names the suite: collects its cases, and keeps the worker that answers them."""

    def __init__(self, config: pytest.Config):
        given = config.option
        try:
            self.options = Options(
                device=given.dovetail_device,
                level=given.dovetail_level,
                quick=given.dovetail_quick,
                profile=given.dovetail_profile,
                seed=given.dovetail_seed,
                timeout=TIMEOUT if given.dovetail_timeout is None else given.dovetail_timeout,
                api=given.dovetail_api,
                no_report=True,
            )
            self.cases = plan(self.options).cases
        except UsageError as error:  # which speaks of the command's options
            raise pytest.UsageError(str(error).replace("--", "--dovetail-")) from error
        self.worker = getattr(config, "workerinput", None)  # of pytest-xdist
        side_by_side = self.worker["workercount"] if self.worker else 1
        o = self.options
        self.config = Config(given.dovetail_device, o.seed, side_by_side, o.timeout, o.api, o.profile)
        self.pool = Pool(self.config)
        config.add_cleanup(self.pool.close)
        # pytest selects with :: in files alone.
        for i, argument in enumerate(config.args):
            if pytest_plugin.named(argument):
                config.args[i] = argument.replace(pytest_plugin.SUITE + "::", pytest_plugin.__name__ + "::", 1)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """The device is opened before anything is collected: without it there is nothing to do."""
        if self.worker or session.config.option.collectonly:
            return
        try:
            self.pool.open()
        except DeviceUnavailable as error:
            raise pytest.UsageError(str(error)) from error
        if session.config.getoption("dist", "no") != "no":
            self.pool.close()  # the cases run in pytest-xdist's processes, each with a worker of its own

    def pytest_report_header(self) -> str:
        device = self.config.device
        if opened := self.pool.description:
            suite = version("dovetail-conformance")
            device = f"{headline(opened)}, dovetail {opened['dovetail']}, dovetail-conformance {suite}"
        what = f"{'quick ' if self.options.quick else ''}{self.options.asked}"
        profile = f" of profile {self.options.profile}" if self.options.profile else ""
        return f"dovetail: {device}: {what}{profile}, seed {self.config.seed}"

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        return Folder.from_parent(parent, path=path, suite=self) if path == FILE.parent else None


class Folder(pytest.Directory):
    def __init__(self, *, suite: Suite, **node: Any):
        super().__init__(nodeid=pytest_plugin.SUITE, **node)
        self.suite = suite

    def collect(self) -> Iterator[pytest.Collector]:
        yield File.from_parent(self, path=FILE, suite=self.suite)


class File(pytest.File):
    def __init__(self, *, suite: Suite, **node: Any):
        # Its name is empty, for -k searches it.
        super().__init__(name="", nodeid=pytest_plugin.SUITE, **node)
        self.suite = suite

    def __repr__(self) -> str:
        return f"<{self.suite.options.asked} of {self.suite.config.device}>"

    def collect(self) -> Iterator[pytest.Item]:
        for case in self.suite.cases:
            # With its nodeid as text, which pytest takes apart at the bracket: --lf compares them so.
            nodeid = f"{pytest_plugin.SUITE}::{case.id}"
            yield Item.from_parent(self, name=case.id, nodeid=nodeid, suite=self.suite, case=case)


class DidNotPass(Exception):
    def __init__(self, result: Result):
        self.result = result


class Item(pytest.Item):
    def __init__(self, *, suite: Suite, case: Case, **node: Any):
        super().__init__(**node)
        self.suite, self.case = suite, case

    def runtest(self) -> None:
        try:
            (result,) = self.suite.pool.run([self.name])
        except DeviceUnavailable as error:
            self.session.shouldfail = LOST
            pytest.fail(f"{LOST}: {error}", pytrace=False)
        if result.bad or (result.status is Status.UNSUPPORTED and costs(self.case, result)):
            raise DidNotPass(result)
        if result.status is Status.UNSUPPORTED:
            pytest.skip(result.message)
        if result.status is Status.WAIVED:
            pytest.xfail(result.message)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, DidNotPass):
            result = excinfo.value.result
            return f"{result.status}: {result.message}\n{self.suite.options.replay.command(result.id)}"
        return super().repr_failure(excinfo, style)

    @property
    def location(self) -> tuple[str, int | None, str]:
        return pytest_plugin.SUITE, None, f"{self.name} on {self.suite.config.device}"
