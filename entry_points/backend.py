"""What is known of one backend or kernel pack, and how its failures are told."""

from __future__ import annotations

from collections.abc import Callable


class BackendError(RuntimeError):
    """The backend cannot be used; the message has the full cause and the cure."""


class BackendWarning(RuntimeWarning):
    """Something about the installed backends needs attention; the others work."""


class Failure(Exception):
    """Why a backend is quarantined."""

    def __init__(self, cause: str, cure: str = "") -> None:
        super().__init__(cause)
        self.cause, self.cure = cause, cure


class Backend:
    """One backend that was found. `status` is

    - "found": known from metadata, not opened yet
    - "ready": opened; its devices are in dovetail.devices()
    - "quarantined": `cause` says why it cannot be used and `cure` what helps
    - "left out": installed, but the environment says not to use it; `cause` says which variable
    """

    what = "backend"

    def __init__(self, name: str, origin: str, *, distribution: str = "", library: str = "") -> None:
        self.name = name
        self.status = "found"
        self.distribution = distribution  # "dovetail-acme 1.2", or "" where no wheel brought it
        self.origin = origin  # "entry point dovetail_acme:backend", "DOVETAIL_BACKEND_PATH", "load_backend"
        self.library = library
        self.search: list[str] = []
        self.cause = ""
        self.cure = ""
        self.advice = ""  # its own or its wheel's, where it finds no device
        self.seconds = 0.0  # that opening it took
        self.error: BaseException | None = None  # the exception behind `cause`, where there is one
        self.told = False  # the user was warned

    def as_dict(self) -> dict[str, object]:
        fields = (
            "name",
            "status",
            "distribution",
            "origin",
            "library",
            "search",
            "cause",
            "cure",
            "advice",
            "seconds",
        )
        return {field: getattr(self, field) for field in fields}

    def leave_out(self, cause: str, cure: str = "") -> None:
        self.status, self.cause, self.cure = "left out", cause, cure

    def quarantine(self, cause: str, cure: str, error: BaseException | None = None) -> None:
        self.status, self.cause, self.cure, self.error = "quarantined", cause, cure, error

    def ready(self, name: str) -> None:
        self.name, self.status = name, "ready"
        self.cause = self.cure = ""
        self.error = None

    def settle(self, open_it: Callable[[], str]) -> None:
        """Ready under the name that open_it returns, or quarantined with what it raises."""
        try:
            name = open_it()
        except Failure as failure:
            self.quarantine(failure.cause, failure.cure, failure.__cause__)
        except RuntimeError as error:
            cause, _, cure = str(error).rpartition("; ")
            self.quarantine(cause or cure, cure if cause else "", error)
        except (Exception, SystemExit) as error:
            self.quarantine(f"opening it raised {type(error).__name__}: {error}", "", error)
        else:
            self.ready(name or self.name)

    def untold(self) -> list[str]:
        """The one warning that it gets where it is quarantined."""
        if self.status != "quarantined" or self.told:
            return []
        self.told = True
        return [f"{self.explain()}. Other devices are not affected; `dovetail devices` lists them all"]

    def explain(self) -> str:
        """One sentence: what is wrong, and what helps."""
        what = f"[loader] {self.what} {self.name!r}"
        if self.distribution:
            what += f" of {self.distribution}"
        return f"{what} is {self.status}: {self.cause}" + (f"; {self.cure}" if self.cure else "")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self.status}>"


class Pack(Backend):
    """A kernel pack: rows for the backend `device`, from a wheel of its own. It is opened with its backend."""

    what = "kernel pack"

    def __init__(self, name: str, device: str, origin: str, *, distribution: str = "", library: str = "") -> None:
        super().__init__(name, origin, distribution=distribution, library=library)
        self.device = device

    def as_dict(self) -> dict[str, object]:
        return super().as_dict() | {"device": self.device}


def error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def did_you_mean(word: str, known: list[str]) -> str:
    """Reads `, did you mean 'cpu'?` or, where nothing is near, `; known: acme, cpu`."""
    from difflib import get_close_matches

    lower = {name.lower(): name for name in known}
    if near := get_close_matches(word.lower(), lower, n=1, cutoff=0.5):
        return f", did you mean {lower[near[0]]!r}?"
    return f"; known: {', '.join(sorted(known))}" if known else ""
