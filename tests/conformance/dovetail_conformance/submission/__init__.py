"""The submission package: one file that shows a device's level to others, and what checks it.

`archive` is its outer form, `wheels` and `statement` are its other members next to results.json, `package` makes
it, `verify` computes again all that can be computed.
"""


class Refused(Exception):
    """The package is invalid; the message gives the reason in one line."""
