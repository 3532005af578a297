"""The state of one backend or kernel pack, and the messages about its failures."""

from __future__ import annotations

from collections.abc import Callable


class BackendError(RuntimeError):
    """The backend cannot be used; the message has the full cause and the cure."""

    cure = ""  # the part of it that the user can do


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
    - "quarantined": it cannot be used; `cause` is why, `cure` what helps
    - "left out": installed, but an environment variable excludes it; `cause` names the variable
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
        self.hint = ""  # from the plugin or its wheel, for a machine without such a device
        self.notes: list[str] = []  # problems that do not keep it from working
        self.seconds = 0.0  # the arguments that open it
        self.error: BaseException | None = None  # the exception that led to `cause`
        self.warned = False  # the user was warned
        self._notes_warned = 0  # of how many notes the user was warned

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
            "hint",
            "notes",
            "seconds",
        )
        return {field: getattr(self, field) for field in fields}

    def leave_out(self, cause: str, cure: str = "") -> None:
        self.status, self.cause, self.cure = "left out", cleaned(cause), cleaned(cure)

    def quarantine(self, cause: str, cure: str, error: BaseException | None = None) -> None:
        self.status, self.cause, self.cure, self.error = "quarantined", cleaned(cause), cleaned(cure), error

    def note(self, text: str) -> None:
        self.notes.append(cleaned(text))

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
            cure = getattr(error, "cure", "")
            self.quarantine(error_text(error, named=False).removesuffix(f"; {cure}"), cure, error)
        except BaseException as error:
            if ends_the_program(error):
                raise
            self.quarantine(f"opening it raised {error_text(error)}", "", error)
        else:
            self.ready(name or self.name)

    def unreported(self) -> list[str]:
        """Warnings not given yet: one where it is quarantined, and one for each note."""
        who = f"[loader] {self.what} {self.name!r}"
        texts = [f"{who}: {note}" for note in self.notes[self._notes_warned :]]
        self._notes_warned = len(self.notes)
        if self.status == "quarantined" and not self.warned:
            self.warned = True
            texts.append(f"{self.explain()}. Other devices are not affected; `dovetail devices` lists them all")
        return texts

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


def ends_the_program(error: BaseException) -> bool:
    """KeyboardInterrupt must stop the program. Any other exception of an imported module affects only that module:
    Rust panics, outcomes of pytest and SystemExit are no subclasses of Exception either."""
    return isinstance(error, KeyboardInterrupt)


def error_text(error: BaseException, *, named: bool = True) -> str:
    """`ValueError: text`; an exception whose __str__ raises has no text."""
    try:
        text = str(error)
    except Exception as failure:
        text = f"<its __str__ raised {type(failure).__name__}>"
    name = type(error).__name__
    return (f"{name}: {text}" if text else name) if named else text


def cleaned(text: str, most: int = 4096) -> str:
    """A third party's text, made safe for a terminal: no control characters, at most `most` characters."""
    shown = text if len(text) <= most else f"{text[:most]}..."
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in shown)


def nearest(word: str, known: list[str], cutoff: float = 0.5) -> str:
    """The known name that `word` may be a misspelling of; "" if none is near."""
    from difflib import get_close_matches

    lower = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), lower, n=1, cutoff=cutoff)
    return lower[near[0]] if near else ""


def did_you_mean(word: str, known: list[str]) -> str:
    """Reads `, did you mean 'cpu'?` or, where nothing is near, `; known: acme, cpu`."""
    if near := nearest(word, known):
        return f", did you mean {near!r}?"
    return f"; known: {', '.join(sorted(known))}" if known else ""
