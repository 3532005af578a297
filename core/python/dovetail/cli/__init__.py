"""The command line. Everything in this package is imported only when a command runs."""


def main() -> None:
    from dovetail.cli.app import dovetail

    dovetail(prog_name="dovetail")
