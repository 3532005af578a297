"""The command line. Everything in this package is imported only when a command runs."""


def main() -> None:
    from dovetail import _core  # noqa: F401 - raises where another project's dovetail/__init__.py has replaced ours
    from dovetail.cli.app import dovetail

    dovetail(prog_name="dovetail")
